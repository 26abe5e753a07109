#include "apps/lab/rollout/rollout_session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/lab/rollout/sample_queue.h"
#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/receipt.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::int64_t kTailShare = 20;  // One of so many.

// A sample while it is decoded.
class Sampling : public RequestListener {
 public:
  // `tokens` counts those of all samples.
  Sampling(SampleToDo to_do, std::int64_t* tokens) : which(to_do), tokens_(tokens) {}

  void OnToken(SequenceId, const EmittedToken& token) override {
    sample.tokens.push_back(token.token);
    if (token.logprobs != nullptr) sample.logprobs.push_back(token.logprobs->front().logprob);
    sample.text += token.text;
    ++*tokens_;
  }
  void OnFinish(SequenceId, FinishReason reason, const RequestStats& stats) override {
    sample.finish = reason;
    sample.rounds = stats.rounds;
    sample.proposed = stats.proposed;
    sample.accepted = stats.accepted;
    finished = stats;
  }

  const SampleToDo which;
  SequenceId id = 0;
  bool computed = false;  // Its prompt, as the queue has been told.
  RolloutSample sample;
  std::optional<RequestStats> finished;

 private:
  std::int64_t* tokens_;
};

class RolloutRun {
 public:
  RolloutRun(const RolloutJob& job, Engine* engine, RolloutFile* file)
      : job_(job),
        engine_(engine),
        file_(file),
        queue_(Count(job.prompts), job.samples),
        tail_(job.tail) {}

  Result<RolloutReport> Take() {
    Skip();
    FT_RETURN_IF_ERROR(FitTail());
    ProgressBar bar("rollout", queue_.left());
    start_ = NowNs();
    Status status;
    engine_->Attach();
    while (true) {
      if (status.ok() && !Interrupted()) status = Fill();
      if (!status.ok() || Interrupted()) Cancel();
      if (running_.empty()) break;
      SpeculateOnFreeRows();
      engine_->Step();
      const std::size_t before = finishes_.size();
      if (const Status collected = Collect(); !collected.ok()) status = collected;
      bar.Advance(static_cast<std::int64_t>(finishes_.size() - before));
    }
    FT_RETURN_IF_ERROR(status);
    return Report();
  }

 private:
  struct Finish {
    std::int64_t at_ns = 0;
    std::int64_t tokens = 0;  // Tokens of all samples until then.
  };

  static int Count(const std::vector<RolloutPrompt>& prompts) { return prompts.size(); }

  void Skip() {
    std::map<std::string, int> places;
    for (int i = 0; i < Count(job_.prompts); ++i) {
      places.emplace(job_.prompts[i].id.dump(), i);
    }
    for (const FinishedSample& there : file_->finished()) {
      const auto place = places.find(there.prompt);
      if (place == places.end() || there.sample < 0 || there.sample >= job_.samples) continue;
      const std::int64_t left = queue_.left();
      queue_.Skip({place->second, there.sample}, there.tokens);
      report_.skipped += left - queue_.left();
    }
  }

  // Takes K down to what the engine can follow, before anything is decoded.
  Status FitTail() {
    while (tail_) {
      const auto longest = tail_->For(1);
      if (!longest) return {};
      // Nobody has that number: the plan is checked and changes nothing.
      const Status followed = engine_->ChangePlan(/*sequence=*/0, *longest);
      if (followed.ok()) return {};
      if (!tail_->fixed && tail_->lookahead > 1) {
        --tail_->lookahead;
      } else if (tail_->asked) {
        return followed;
      } else {
        tail_.reset();
      }
    }
    return {};
  }

  // Begins samples while there is room.
  Status Fill() {
    while (running_.size() < Size(job_.batch)) {
      const auto next = queue_.Next();
      if (!next) return {};
      auto sampling = std::make_unique<Sampling>(*next, &tokens_);
      const RolloutPrompt& prompt = job_.prompts[next->prompt];
      Request request = job_.request;
      request.prompt = prompt.tokens;
      request.continues_text = prompt.continues_text;
      request.sampling.seed = SampleSeed(job_.request.sampling.seed, prompt.id, next->sample);
      request.sampling.top_logprobs = 0;
      request.listener = sampling.get();
      sampling->sample.prompt = prompt.id;
      sampling->sample.sample = next->sample;
      sampling->sample.seed = request.sampling.seed;
      FT_ASSIGN_OR_RETURN(sampling->id, engine_->Submit(std::move(request)));
      running_.push_back(std::move(sampling));
    }
    return {};
  }

  void Cancel() {
    for (const auto& sampling : running_) engine_->Cancel(sampling->id);
  }

  // Once nothing is left to begin, whenever fewer run than before.
  void SpeculateOnFreeRows() {
    const int running = running_.size();
    if (!tail_ || queue_.left() > 0 || running == planned_for_) return;
    planned_for_ = running;
    const auto plan = tail_->For(running);
    if (!plan || plan->lookahead.value_or(0) == planned_) return;
    planned_ = plan->lookahead.value_or(0);
    for (const auto& sampling : running_) (void)engine_->ChangePlan(sampling->id, *plan);
  }

  Status Collect() {
    Status status;
    for (const auto& sampling : running_) {
      if (!sampling->computed && !sampling->sample.tokens.empty()) {
        sampling->computed = true;
        queue_.Computed(sampling->which.prompt);
      }
      if (!sampling->finished || sampling->sample.finish == FinishReason::kCancelled) continue;
      if (sampling->sample.finish == FinishReason::kNotFinite) {
        status = InvalidInput(NotFiniteMessage(job_.model));
        continue;
      }
      if (!sampling->computed) queue_.Computed(sampling->which.prompt);  // It ended at once.
      queue_.Finished(sampling->which.prompt, sampling->finished->output_tokens);
      report_.stats.AddCounts(*sampling->finished);
      finishes_.push_back({NowNs(), tokens_});
      if (status.ok()) status = file_->Add(sampling->sample);
    }
    std::erase_if(running_, [](const auto& sampling) { return sampling->finished.has_value(); });
    return status;
  }

  RolloutReport Report() {
    const std::int64_t all = finishes_.size();
    report_.samples = all;
    report_.left = std::ssize(job_.prompts) * job_.samples - all - report_.skipped;
    if (all == 0) return report_;
    report_.total_ns = finishes_.back().at_ns - start_;
    report_.tail_samples = std::max<std::int64_t>(1, all / kTailShare);
    const Finish before =
        report_.tail_samples == all ? Finish{start_, 0} : finishes_[all - report_.tail_samples - 1];
    report_.tail_ns = finishes_.back().at_ns - before.at_ns;
    report_.tail_tokens = tokens_ - before.tokens;
    return report_;
  }

  const RolloutJob& job_;
  Engine* engine_;
  RolloutFile* file_;
  SampleQueue queue_;
  std::optional<TailPlan> tail_;  // The plan, if the engine can follow it.
  std::vector<std::unique_ptr<Sampling>> running_;
  std::vector<Finish> finishes_;
  std::int64_t start_ = 0;
  std::int64_t tokens_ = 0;
  int planned_for_ = 0;  // The number of sequences that `planned_` is for, by SpeculateOnFreeRows.
  int planned_ = -1;     // The K of that plan; 0: what is chosen otherwise.
  RolloutReport report_;
};

// What the samples' tokens depend on, as the receipt of one would have it.
Json HeaderOf(const LanguageModel& target, const Request& request, const RolloutOptions& options,
              const std::vector<RolloutPrompt>& prompts) {
  Json header = Json::Parse(
      FormatReceipt(MakeReceipt(target, request, /*tokens=*/{}, FinishReason::kMaxTokens)));
  header["foretoken_rollout"] = 1;
  header["target"] = target.source().label();
  header["weights"] = header["model"];
  header["prompts"] = FingerprintOf(prompts);
  header["max_tokens"] = request.stop.max_tokens;
  header["stop"] = request.stop.stop_strings;
  header["ignore_eos"] = request.stop.ignore_eos;
  header["verify"] = options.speculation.verification;
  for (const char* of_one :
       {"receipt", "model", "prompt", "continues_text", "tokens", "finish_reason", "chain"}) {
    header.erase(of_one);
  }
  return header;
}

int LongestOf(const std::vector<RolloutPrompt>& prompts) {
  std::size_t longest = 0;
  for (const RolloutPrompt& prompt : prompts) longest = std::max(longest, prompt.tokens.size());
  return longest;
}

// Nothing where the last samples have nothing to change.
std::optional<TailPlan> TailOf(Mode mode, const std::optional<Mode>& tail_mode,
                               const RolloutOptions& options) {
  const PlanOptions& given = options.speculation.plan;
  const Mode last = tail_mode.value_or(mode);
  const bool fixed = given.lookahead.has_value() || given.speculation_length.has_value();
  if (!tail_mode && (mode.planned() || fixed)) return std::nullopt;
  const int full = given.lookahead.value_or(SpeculationOptions::kDefaultLookahead);
  return TailPlan{.mode = last,
                  .rows = options.batch * (mode.drafts() ? full + 1 : 1),
                  .lookahead = std::max(full, kMaxPlannedLookahead),
                  .fixed = fixed,
                  .asked = tail_mode.has_value()};
}

}  // namespace

Result<RolloutReport> RunRollout(const RolloutJob& job, Engine* engine, RolloutFile* file) {
  return RolloutRun(job, engine, file).Take();
}

/// Weights of drafts, which are there for the next target's engine while nobody else holds them.
struct RolloutSession::Drafts {
  explicit Drafts(std::shared_ptr<ByDrafter<PackedWeights>> of_target)
      : packed(std::move(of_target)) {
    for (const PackedWeights& draft : *packed) weights.push_back(draft.weights.lock());
  }

  std::shared_ptr<ByDrafter<PackedWeights>> packed;
  std::vector<std::shared_ptr<const ModelWeights>> weights;
};

/// A target with the engine over it.
struct RolloutSession::Loaded {
  RolloutOptions options;  // Their models are resolved.
  Mode mode;
  std::optional<Mode> tail_mode;
  std::optional<TailPlan> tail;
  Decoding decoding;
  std::unique_ptr<Engine> engine;  // Null: yet to be opened.

  std::vector<Mode> modes() const {
    std::vector<Mode> all = options.datastore.ModesFor(mode);
    if (tail_mode) all.push_back(*tail_mode);
    return all;
  }
};

RolloutSession::RolloutSession(RolloutOptions options) : options_(std::move(options)) {}
RolloutSession::~RolloutSession() = default;

Status RolloutSession::CheckTokenizer(const std::string& target) const {
  if (tokenizer_.empty()) return {};
  FT_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(target));
  if (tokenizer->fingerprint() == tokenizer_) return {};
  return Invalid(
      "'{}' has another tokenizer than the target before: weights may change between two jobs, not "
      "the tokens",
      target);
}

Status RolloutSession::LoadFor(const RolloutOrder& order) {
  if (loaded_ != nullptr && order.target.empty()) return {};
  const std::string target = order.target.empty() ? target_ : order.target;
  if (!order.target.empty()) FT_RETURN_IF_ERROR(CheckTokenizer(target));
  if (loaded_ != nullptr) FT_RETURN_IF_ERROR(loaded_->decoding.datastore.Flush());
  loaded_.reset();  // Before the others come: memory need not hold both.
  FT_ASSIGN_OR_RETURN(loaded_, Load(target));
  target_ = target;
  tokenizer_ = loaded_->decoding.target->tokenizer()->fingerprint();
  return {};
}

Result<std::unique_ptr<RolloutSession::Loaded>> RolloutSession::Load(const std::string& target) {
  auto loaded = std::make_unique<Loaded>();
  RolloutOptions& options = loaded->options;
  options = options_;
  if (!target.empty()) {
    options.model.target = target;
    options.model.hub_target.clear();
  }
  FT_ASSIGN_OR_RETURN(loaded->mode, options.Choose());
  if (!options.tail_mode.empty()) {
    FT_ASSIGN_OR_RETURN(const Mode tail, ParseMode(options.tail_mode));
    FT_RETURN_IF_ERROR(options.model.CheckDraftOf(tail));
    if (tail != loaded->mode) loaded->tail_mode = tail;
  }
  FT_RETURN_IF_ERROR(options.CheckFor(loaded->modes()));
  loaded->tail = TailOf(loaded->mode, loaded->tail_mode, options);
  // A full batch keeps all cores busy by itself, so none is left to a draft unless that is asked
  // for: mode auto then chooses among what runs on the target's.
  FT_ASSIGN_OR_RETURN(loaded->decoding,
                      options.Load(loaded->mode.planned() ? Mode::kSd : loaded->mode));
  if (drafts_ != nullptr) loaded->decoding.target->loaded().draft_weights = drafts_->packed;
  return loaded;
}

Status RolloutSession::OpenEngine(const std::vector<RolloutPrompt>& prompts) {
  const RolloutOptions& options = loaded_->options;
  const int wanted = LongestOf(prompts) + options.generation.stop.max_tokens +
                     std::max(options.speculation.MostLookahead(), kMaxPlannedLookahead);
  FT_ASSIGN_OR_RETURN(const int context,
                      ChooseContext(options.model, *loaded_->decoding.target, wanted));
  if (loaded_->engine != nullptr && loaded_->engine->limits().context >= context) return {};
  loaded_->engine.reset();  // Its keys and values go before others are made.
  FT_ASSIGN_OR_RETURN(
      EngineOptions engine,
      options.EngineFor(loaded_->modes(), loaded_->decoding.cores, options.batch, context));
  if (loaded_->tail) engine.max_lookahead = loaded_->tail->lookahead;
  FT_ASSIGN_OR_RETURN(loaded_->engine, Engine::Open(loaded_->decoding.target, engine));
  drafts_ = std::make_unique<Drafts>(loaded_->decoding.target->loaded().draft_weights);
  return {};
}

Result<RolloutDone> RolloutSession::Take(const RolloutOrder& order) {
  FT_RETURN_IF_ERROR(LoadFor(order));
  const RolloutOptions& options = loaded_->options;
  const LanguageModel& target = *loaded_->decoding.target;
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options.model, target, /*wanted=*/0));
  RolloutJob job{.model = loaded_->decoding.target->source().label(),
                 .samples = order.samples,
                 .batch = options.batch,
                 .tail = loaded_->tail};
  FT_ASSIGN_OR_RETURN(job.prompts,
                      ReadRolloutPrompts(order.prompts,
                                         {.tokenizer = *target.tokenizer(),
                                          .raw = order.prompts.raw,
                                          .variables = options.chat_template.variables},
                                         context));
  job.request.sampling = options.generation.sampling;
  job.request.sampling.seed = order.seed;
  job.request.stop = options.generation.stop;
  job.request.datastore = loaded_->decoding.datastore.tenant;
  FT_ASSIGN_OR_RETURN(job.request.adapter, TheAdapter(target));
  const Json header = HeaderOf(target, job.request, options, job.prompts);
  FT_ASSIGN_OR_RETURN(RolloutFile file, RolloutFile::Open(order.out, header));
  FT_RETURN_IF_ERROR(OpenEngine(job.prompts));
  RolloutDone done{.report = {},
                   .target = target.source().label(),
                   .weights = header["weights"],
                   .draft = options.model.DraftLabel(),
                   .mode = loaded_->mode,
                   .tail_mode = loaded_->tail_mode,
                   .prompts = job.prompts.size()};
  FT_ASSIGN_OR_RETURN(done.report, RunRollout(job, loaded_->engine.get(), &file));
  FT_RETURN_IF_ERROR(loaded_->decoding.datastore.Flush());
  return done;
}

}  // namespace foretoken
