#include "door/learning/draft_learner.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "base/files/read_file.h"
#include "base/files/replace_file.h"
#include "base/numbers/integers.h"
#include "door/assembly/make_engine.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytes = std::size_t{16} << 20;
constexpr std::size_t kWaitingBytes = std::size_t{128} << 20;
constexpr std::int64_t kFlushNs = 5'000'000'000;
constexpr std::size_t kMostStateBytes = 4096;  // The largest in-use.json that is read.

fs::path Captures(const fs::path& folder) { return folder / "captures"; }
fs::path Candidates(const fs::path& folder) { return folder / "candidates"; }
fs::path InUseFile(const fs::path& folder) { return folder / "in-use.json"; }

std::string CandidateInUse(const fs::path& folder) {
  const auto text = ReadFile(InUseFile(folder), kMostStateBytes);
  if (!text.ok()) return {};
  const Json state = Json::Parse(*text);
  if (!state.is_object() || !state.contains("candidate") || !state["candidate"].is_string()) {
    return {};
  }
  // A name, not a path that leads elsewhere.
  const auto name = state["candidate"].get<std::string>();
  if (name.find('/') != std::string::npos || name.starts_with('.')) return {};
  std::error_code ignored;
  return fs::is_directory(Candidates(folder) / name, ignored) ? name : std::string();
}

}  // namespace

std::optional<fs::path> DraftLearner::InUse(const fs::path& folder) {
  const std::string name = CandidateInUse(folder);
  if (name.empty()) return std::nullopt;
  return Candidates(folder) / name;
}

DraftOptions DraftLearner::At(const fs::path& candidate, DraftOptions draft) {
  draft.source.path = candidate.string();
  draft.source.name.clear();
  draft.source.own_drafter.clear();
  return draft;
}

Result<std::unique_ptr<DraftLearner>> DraftLearner::Make(LoadedModel* target, DraftOptions draft,
                                                         const TapShape& taps,
                                                         const LearningOptions& options,
                                                         LogSink log) {
  std::unique_ptr<DraftLearner> learner(
      new DraftLearner(target, std::move(draft), taps, options, std::move(log)));
  FT_ASSIGN_OR_RETURN(
      learner->traffic_,
      Traffic::Begin(Captures(options.folder), taps, target->tokenizer->fingerprint(),
                     {.kept_bytes = options.capture_bytes,
                      .file_bytes = std::min(kFileBytes, options.capture_bytes / 4),
                      .waiting_bytes = kWaitingBytes,
                      .flush_ns = kFlushNs,
                      .held_back_every = options.held_back_every,
                      .held_back_most = 4 * options.texts_to_judge},
                     learner->log_));
  std::error_code error;
  fs::create_directories(Candidates(options.folder), error);
  if (error) {
    return Invalid("{} cannot be made: {}", Candidates(options.folder).string(), error.message());
  }
  return learner;
}

DraftLearner::DraftLearner(LoadedModel* target, DraftOptions draft, TapShape taps,
                           LearningOptions options, LogSink log)
    : target_(target),
      first_(WithoutProgress(std::move(draft))),
      taps_(std::move(taps)),
      options_(std::move(options)),
      log_(std::move(log)),
      in_use_(CandidateInUse(options_.folder)),
      judged_(in_use_) {
  report_.candidate = in_use_;
}

DraftOptions DraftLearner::WithoutProgress(DraftOptions draft) {
  draft.progress = nullptr;
  return draft;
}

DraftLearner::~DraftLearner() { End(); }

void DraftLearner::Begin(Engine* engine) {
  engine_ = engine;
  lookahead_ = ConfigOf(*engine).plan.lookahead;
  thread_ = std::thread([this] { Run(); });
}

void DraftLearner::End() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

LearningReport DraftLearner::report() const {
  const TrafficCounts counts = traffic_->counts();
  const std::lock_guard lock(mutex_);
  LearningReport report = report_;
  report.captured = counts.captured;
  report.captured_tokens = counts.tokens;
  report.held_back = counts.held_back;
  report.left_out = counts.left_out;
  if (!counts.failure.empty()) report.failure = counts.failure;
  return report;
}

void DraftLearner::Run() {
  setpriority(PRIO_PROCESS, 0, 19);  // Linux does it for this thread only.
  std::unique_lock lock(mutex_);
  const auto interval = std::chrono::duration<double>(options_.look_seconds);
  while (!wake_.wait_for(lock, interval, [this] { return stop_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void DraftLearner::Look() {
  if (next_ != nullptr && next_->taken()) next_.reset();  // What the engine had before goes here.
  if (next_ != nullptr) return;
  LookBack();
  if (next_ == nullptr) JudgeNewest();
}

DraftOptions DraftLearner::OptionsOf(const std::string& candidate) const {
  return candidate.empty() ? first_ : At(Candidates(options_.folder) / candidate, first_);
}

std::string DraftLearner::Newest() const {
  std::string newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(Candidates(options_.folder), error)) {
    const std::string name = entry.path().filename().string();
    // A trainer renames what is whole.
    if (name.ends_with(".part") || name.starts_with('.') || name <= newest) continue;
    if (fs::exists(entry.path() / "config.json", error)) newest = name;
  }
  return newest;
}

std::vector<DraftScore> DraftLearner::ScoresOf(
    const std::string& candidate, std::span<const std::shared_ptr<const StatedText>> texts) {
  auto draft = JudgedDraft::Load(target_, OptionsOf(candidate), taps_);
  if (!draft.ok()) {
    Log(fmt::format("a draft that was trained cannot be used: {}", draft.error().message));
    return {};
  }
  std::vector<DraftScore> scores;
  for (const auto& text : texts) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return {};
    }
    scores.push_back((*draft)->Score(*text, lookahead_));
  }
  return scores;
}

void DraftLearner::JudgeNewest() {
  const std::string candidate = Newest();
  if (candidate.empty() || candidate <= judged_) return;
  const auto texts = traffic_->HeldBack();
  if (std::ssize(texts) < options_.texts_to_judge) return;  // Until there are more.
  const auto in_use = ScoresOf(in_use_, texts);
  const auto other = ScoresOf(candidate, texts);
  if (in_use.size() < texts.size() || other.size() < texts.size()) {
    if (other.empty()) judged_ = candidate;
    return;
  }
  judged_ = candidate;
  const std::string before = in_use_;
  const bool kept = IsBetter(other, in_use) && Use(candidate);
  if (kept) {
    previous_ = before;
    held_back_then_ = traffic_->counts().held_back;
  }
  Decide(candidate, kept, Total(other), Total(in_use), texts.size());
}

void DraftLearner::LookBack() {
  if (!previous_.has_value()) return;
  const auto all = traffic_->HeldBack();
  // Only what came since: the draft in use was chosen by the others.
  const std::size_t fresh =
      std::min<std::int64_t>(traffic_->counts().held_back - held_back_then_, std::ssize(all));
  if (std::ssize(all) == 0 || fresh < Size(options_.texts_to_judge)) return;
  const auto texts = std::span(all).last(fresh);
  const std::string previous = *std::exchange(previous_, std::nullopt);
  const auto other = ScoresOf(previous, texts);
  const auto in_use = ScoresOf(in_use_, texts);
  if (other.size() < texts.size() || in_use.size() < texts.size()) return;
  const std::string replaced = in_use_;
  if (!IsBetter(other, in_use) || !Use(previous)) return;
  {
    const std::lock_guard lock(mutex_);
    ++report_.rolled_back;
  }
  Decide(replaced, /*kept=*/false, Total(in_use), Total(other), texts.size());
}

bool DraftLearner::Use(const std::string& candidate) {
  auto next = PrepareDraft(*engine_, target_, OptionsOf(candidate));
  if (!next.ok()) {
    Log(fmt::format("a draft that was trained cannot be used: {}", next.error().message));
    return false;
  }
  next_ = std::move(next).value();
  engine_->UseDraft(next_);
  in_use_ = candidate;
  const Status written =
      ReplaceFile(InUseFile(options_.folder), Json{{"candidate", candidate}}.dump() + "\n");
  if (!written.ok()) Log(written.error().message);
  return true;
}

void DraftLearner::Decide(const std::string& candidate, bool kept, DraftScore other,
                          DraftScore in_use, std::size_t texts) {
  {
    const std::lock_guard lock(mutex_);
    ++report_.judged;
    if (kept) ++report_.kept;
    report_.candidate = in_use_;
    report_.tokens_per_round = (kept ? other : in_use).tokens_per_round();
  }
  Log(fmt::format(
      "draft {}: {:.3f} tokens a round on {} texts held back, {:.3f} with the one before: {}",
      candidate, other.tokens_per_round(), texts, in_use.tokens_per_round(),
      kept ? "now in use" : "not used"));
  const Json verdict = {{"candidate", candidate},
                        {"kept", kept},
                        {"tokens_per_round", other.tokens_per_round()},
                        {"in_use_tokens_per_round", in_use.tokens_per_round()},
                        {"texts", texts}};
  const fs::path path = fs::path(options_.folder) / "verdicts.jsonl";
  std::ofstream verdicts(path, std::ios::app);
  verdicts << verdict.dump() << std::endl;
  if (!verdicts) Log(fmt::format("cannot write '{}'", path.string()));
}

void DraftLearner::Log(const std::string& sentence) const {
  if (log_) log_(sentence);
}

}  // namespace foretoken
