#include "core/datastore/datastore.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/exhaustion.h"
#include "base/threads/cores.h"

namespace foretoken {
namespace {

// Learned faster than the disk takes it: more is dropped rather than kept in memory.
constexpr std::uint64_t kMaxPendingTokens = std::uint64_t{64} << 20;
constexpr std::chrono::seconds kReclaimInterval{1};

// Background work must not take a core from decoding, nor stay on a core that its starter was
// pinned to.
void EnterBackground() {
  UnpinCurrentThread();
  setpriority(PRIO_PROCESS, 0, 19);  // Linux does it for this thread only.
}

std::vector<std::uint64_t> TokensOf(std::span<const Manifest::SegmentEntry> segments) {
  std::vector<std::uint64_t> tokens;
  for (const auto& segment : segments) tokens.push_back(segment.tokens);
  return tokens;
}

}  // namespace

std::uint64_t Snapshot::tokens() const {
  std::uint64_t total = 0;
  for (const auto& segment : segments) total += segment->tokens();
  return total;
}

std::uint64_t Snapshot::documents() const {
  std::uint64_t total = 0;
  for (const auto& segment : segments) total += segment->documents();
  return total;
}

template <typename Change>
void Datastore::Tell(const Change& change) {
  {
    const std::scoped_lock lock(mutex_);
    change();
  }
  changed_.notify_all();
}

Datastore::~Datastore() { StopThreads(); }

void Datastore::StopThreads() {
  if (options_.read_only) return;
  Tell([this] { stopping_ = true; });
  if (writer_.joinable()) writer_.join();
  if (merger_.joinable()) merger_.join();
}

Manifest Datastore::manifest() const {
  const std::scoped_lock lock(mutex_);
  return manifest_;
}

std::shared_ptr<const Snapshot> Datastore::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return current_;
}

Status Datastore::Learn(std::span<const Token> document) {
  FT_CHECK(!options_.read_only, "learning into a datastore that was opened for reading");
  if (document.empty()) return {};
  for (const Token token : document) {
    if (token < 0 || token >= options_.tokenizer.vocabulary) {
      return Invalid("token {} lies outside the datastore's vocabulary of {}", token,
                     options_.tokenizer.vocabulary);
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_.ok() || pending_tokens_ + document.size() > kMaxPendingTokens) {
      ++lost_;
      return {};
    }
    pending_.emplace_back(document.begin(), document.end());
    pending_tokens_ += document.size();
    ++learned_;
  }
  changed_.notify_all();
  return {};
}

Status Datastore::Flush() {
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = learned_;
  changed_.wait(lock, [&] { return flushed_ >= wanted || !failure_.ok(); });
  return failure_;
}

LearningState Datastore::learning() const {
  const std::scoped_lock lock(mutex_);
  Status failure = failure_.ok() ? merge_failure_ : failure_;
  if (failure.ok()) failure = CheckKept();
  return {.failure = std::move(failure), .lost = lost_};
}

// Under mutex_.
Status Datastore::CheckKept() const {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (!segments_[i]->lost()) continue;
    return Unavailable(
        "{}: lost part of its content while it was open (another program has truncated it, or its "
        "disk fails); retrieval goes on without it",
        SegmentPath(directory_, manifest_.segments[i].number).string());
  }
  return {};
}

bool Datastore::empty() const {
  const std::scoped_lock lock(mutex_);
  return flushed_ == learned_ && current_->segments.empty();
}

Status Datastore::RemoveEmpty(std::unique_ptr<Datastore> datastore) {
  FT_CHECK(!datastore->options_.read_only && datastore->empty(), "removing a datastore in use");
  datastore->StopThreads();
  FileSystem* const files = datastore->files_.get();
  const std::filesystem::path directory = datastore->directory_;
  std::error_code error;
  std::vector<std::filesystem::path> logs;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (FileNumber(at->path()) != 0) logs.push_back(at->path());
  }
  // The lock's file last: until then no other process makes a datastore here.
  FT_RETURN_IF_ERROR(files->Remove(ManifestPath(directory)));
  for (const auto& log : logs) FT_RETURN_IF_ERROR(files->Remove(log));
  FT_RETURN_IF_ERROR(files->Remove(DirectoryLock::Path(directory)));
  std::filesystem::remove(directory, error);  // Stays where somebody keeps other files in it.
  return {};
}

Status Datastore::Import(TokenText text) {
  FT_CHECK(!options_.read_only && text.vocabulary() == options_.tokenizer.vocabulary);
  if (text.entries() == 0) return {};
  const auto sorted = Segment::Build(std::move(text), options_.threads);
  const std::uint64_t number = TakeNumber();
  FT_ASSIGN_OR_RETURN(std::shared_ptr<const Segment> segment, Store(*sorted, number));
  FT_RETURN_IF_ERROR(Commit([&](Manifest* manifest, Segments* segments) {
    manifest->segments.push_back(
        {number, segment->tokens(), segment->documents(), {{Today(), segment->documents()}}});
    segments->push_back(segment);
  }));
  Tell([this] { merge_wanted_ = true; });
  return {};
}

Status Datastore::Compact() {
  FT_CHECK(!options_.read_only, "compacting a datastore that was opened for reading");
  FT_RETURN_IF_ERROR(SealNow());
  for (;;) {
    FT_ASSIGN_OR_RETURN(const bool more, Maintain());
    if (!more) break;
  }
  const std::scoped_lock merging(merging_);
  for (std::size_t first = 0; first < manifest().segments.size(); ++first) {
    const std::vector<std::uint64_t> tokens = TokensOf(manifest().segments);
    std::uint64_t total = tokens[first];
    std::size_t last = first + 1;
    while (last < tokens.size() && total + tokens[last] <= options_.limits.segment_tokens()) {
      total += tokens[last++];
    }
    if (last - first > 1) FT_RETURN_IF_ERROR(Merge(first, last));
  }
  return {};
}

// Returns when what was learned before is in segments, and in no log any more.
Status Datastore::SealNow() {
  Tell([this] { seal_wanted_ = true; });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !seal_wanted_ || !failure_.ok(); });
  return failure_;
}

std::uint64_t Datastore::TakeNumber() {
  const std::scoped_lock lock(mutex_);
  return manifest_.next_number++;
}

Result<std::shared_ptr<const Segment>> Datastore::Store(const Segment& segment,
                                                        std::uint64_t number) {
  const std::filesystem::path path = SegmentPath(directory_, number);
  FT_RETURN_IF_ERROR(WriteSegmentFile(files_.get(), path, segment, options_.tokenizer));
  return OpenSegmentFile(path, options_.tokenizer);
}

// Changes what the datastore consists of: on disk first, then for readers.
Status Datastore::Commit(const std::function<void(Manifest*, Segments*)>& edit) {
  const std::scoped_lock committing(committing_);
  Manifest manifest;
  Segments segments;
  {
    const std::scoped_lock lock(mutex_);
    manifest = manifest_;
    segments = segments_;
  }
  edit(&manifest, &segments);
  FT_RETURN_IF_ERROR(WriteManifest(files_.get(), directory_, manifest));
  {
    const std::scoped_lock lock(mutex_);
    manifest.next_number = manifest_.next_number;  // More may have been taken meanwhile.
    if (manifest.first_log != manifest_.first_log) runs_.clear();
    manifest_ = std::move(manifest);
    segments_ = std::move(segments);
  }
  Publish();
  return {};
}

void Datastore::Publish() {
  {
    const std::scoped_lock lock(mutex_);
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->segments = segments_;
    for (const auto& entry : manifest_.segments) snapshot->arrivals.push_back(entry.arrivals);
    for (const auto& run : runs_) {
      snapshot->segments.push_back(run);
      snapshot->arrivals.push_back({{runs_day_, run->documents()}});
    }
    if (current_ != nullptr) retired_.push_back(std::move(current_));
    current_ = std::move(snapshot);
    version_.fetch_add(1, std::memory_order_release);
  }
  Reclaim();
}

// Unmaps what no reader has any more: here, since it would stop a reader for milliseconds.
void Datastore::Reclaim() {
  std::vector<std::shared_ptr<const Snapshot>> dropped;  // Outlives the lock.
  const std::scoped_lock lock(mutex_);
  const auto unused = std::stable_partition(retired_.begin(), retired_.end(),
                                            [](const auto& old) { return old.use_count() > 1; });
  dropped.assign(std::make_move_iterator(unused), std::make_move_iterator(retired_.end()));
  retired_.erase(unused, retired_.end());
}

std::shared_ptr<const Segment> Datastore::Join(
    std::span<const std::shared_ptr<const Segment>> segments,
    const std::atomic<bool>* cancelled) const {
  TokenText text(options_.tokenizer.vocabulary);
  for (const auto& segment : segments) {
    const Status status = segment->AppendTo(&text);
    FT_CHECK(status.ok(), "{}", status.error().message);  // Limits are below what a text holds.
  }
  return Segment::Build(std::move(text), options_.threads, cancelled);
}

void Datastore::WriterLoop() {
  EnterBackground();
  for (;;) {
    std::vector<std::vector<Token>> documents;
    bool seal = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !pending_.empty() || seal_wanted_ || stopping_; });
      if (pending_.empty() && !seal_wanted_) return;
      documents.swap(pending_);
      pending_tokens_ = 0;
      seal = seal_wanted_;
    }
    bool recorded = false;
    const Status status = OrExhausted([&]() -> Status {
      // All entries of a log came on one day.
      if (!documents.empty() && !runs_.empty() && runs_day_ != Today()) {
        FT_RETURN_IF_ERROR(Seal());
      }
      FT_RETURN_IF_ERROR(Record(documents));
      if (!documents.empty()) AddRun(documents);
      recorded = true;
      std::uint64_t live = 0;
      for (const auto& run : runs_) live += run->tokens();
      return live >= options_.seal_tokens || (seal && live > 0) ? Seal() : Status();
    });
    if (!status.ok()) {
      if (!AwaitWriting(status, recorded ? 0 : documents.size())) return;
      continue;
    }
    Tell([&] {
      flushed_ += documents.size();
      if (seal) seal_wanted_ = false;
    });
  }
}

// After a failure: drops what waits, and tries again and again whether a log can be written. False
// where the datastore ends first.
bool Datastore::AwaitWriting(const Status& failure, std::uint64_t lost) {
  Tell([&] {
    failure_ = failure;
    lost_ += lost + pending_.size();
    pending_.clear();
    pending_tokens_ = 0;
    flushed_ = learned_;
    seal_wanted_ = false;
  });
  if (options_.log) {
    options_.log(
        fmt::format("{}; this is tried again until it works, and outputs are not learned meanwhile",
                    failure.error().message));
  }
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, options_.retry_after, [this] { return stopping_.load(); })) {
        return false;
      }
    }
    if (!BeginLog().ok()) continue;
    Tell([this] { failure_ = {}; });
    if (options_.log) options_.log(fmt::format("{}: can be written again", directory_.string()));
    return true;
  }
}

// Begins a new log and tells its number: after a failure too, since the old one may end with part
// of a record, behind which nothing is read.
Result<std::uint64_t> Datastore::BeginLog() {
  const std::uint64_t number = TakeNumber();
  const std::filesystem::path path = LogPath(directory_, number);
  auto log = EntryLogWriter::Create(files_.get(), path, options_.tokenizer.fingerprint);
  if (!log.ok()) {
    const Status ignored = files_->Remove(path);
    (void)ignored;
    return log.error();
  }
  log_ = std::move(*log);
  return number;
}

Status Datastore::Record(std::span<const std::vector<Token>> documents) {
  if (documents.empty()) return {};
  for (const auto& document : documents) FT_RETURN_IF_ERROR(log_->Append(document));
  return log_->Sync();
}

void Datastore::AddRun(std::span<const std::vector<Token>> documents) {
  TokenText text(options_.tokenizer.vocabulary);
  for (const auto& document : documents) {
    const Status status = text.Append(document);
    FT_CHECK(status.ok(), "{}", status.error().message);  // Learn has looked at the tokens.
  }
  Segments runs = runs_;
  runs.push_back(Segment::Build(std::move(text), options_.threads));
  // As segments on disk do, runs grow geometrically.
  while (runs.size() > 1 && runs[runs.size() - 2]->tokens() < 2 * runs.back()->tokens()) {
    auto joined = Join(std::span(runs).last(2), nullptr);
    runs.pop_back();
    runs.back() = std::move(joined);
  }
  {
    const std::scoped_lock lock(mutex_);
    runs_ = std::move(runs);
    runs_day_ = Today();
  }
  Publish();
}

// Turns all runs into a segment. Entries are in exactly one of log and segments, as the manifest
// says, whenever the process ends.
Status Datastore::Seal() {
  const auto joined = Join(runs_, nullptr);
  const std::uint64_t old_log = manifest().first_log;
  FT_ASSIGN_OR_RETURN(const std::uint64_t new_log, BeginLog());

  const std::uint64_t number = TakeNumber();
  FT_ASSIGN_OR_RETURN(std::shared_ptr<const Segment> segment, Store(*joined, number));
  FT_RETURN_IF_ERROR(Commit([&](Manifest* manifest, Segments* segments) {
    manifest->segments.push_back(
        {number, segment->tokens(), segment->documents(), {{runs_day_, segment->documents()}}});
    manifest->first_log = new_log;
    segments->push_back(segment);
  }));
  for (std::uint64_t log = old_log; log < new_log; ++log) {
    std::error_code ignored;
    if (!std::filesystem::exists(LogPath(directory_, log), ignored)) continue;
    FT_RETURN_IF_ERROR(files_->Remove(LogPath(directory_, log)));
  }
  Tell([this] { merge_wanted_ = true; });
  return {};
}

void Datastore::MergerLoop() {
  EnterBackground();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const auto woken = [this] { return merge_wanted_ || stopping_; };
      if (retired_.empty()) {
        changed_.wait(lock, woken);
      } else {
        changed_.wait_for(lock, kReclaimInterval, woken);
      }
      if (stopping_) return;
      merge_wanted_ = false;
    }
    Reclaim();
    for (bool more = true; more && !stopping_;) {
      const Result<bool> step = OrExhausted([this] { return Maintain(); });
      Tell([&] { merge_failure_ = step.ok() ? Status() : step.error(); });
      if (!step.ok()) break;  // Tried again after the next change.
      more = *step;
    }
  }
}

Result<bool> Datastore::Maintain() {
  const std::scoped_lock merging(merging_);
  const Manifest before = manifest();
  const auto step = PlanMaintenance(TokensOf(before.segments), options_.limits);
  if (!step) return false;
  if (!step->evict_oldest) {
    FT_RETURN_IF_ERROR(Merge(step->first, step->last));
    return true;
  }
  FT_RETURN_IF_ERROR(Commit([](Manifest* manifest, Segments* segments) {
    manifest->segments.erase(manifest->segments.begin());
    segments->erase(segments->begin());
  }));
  FT_RETURN_IF_ERROR(files_->Remove(SegmentPath(directory_, before.segments.front().number)));
  return true;
}

// Replaces segments [first, last) by one. Others may be added behind them meanwhile.
Status Datastore::Merge(std::size_t first, std::size_t last) {
  Segments parts;
  std::vector<Manifest::SegmentEntry> entries;
  {
    const std::scoped_lock lock(mutex_);
    const auto at = [](auto& list, std::size_t i) { return list.begin() + i; };
    parts.assign(at(segments_, first), at(segments_, last));
    entries.assign(at(manifest_.segments, first), at(manifest_.segments, last));
  }
  auto joined = Join(parts, &stopping_);
  if (joined == nullptr) return {};
  if (std::ranges::any_of(parts, [](const auto& part) { return part->lost(); })) {
    const std::scoped_lock lock(mutex_);
    return CheckKept();  // What was joined is not what was learned.
  }
  parts.clear();
  const std::uint64_t number = TakeNumber();
  FT_ASSIGN_OR_RETURN(std::shared_ptr<const Segment> segment, Store(*joined, number));
  joined.reset();
  FT_RETURN_IF_ERROR(Commit([&](Manifest* manifest, Segments* segments) {
    const auto replace = [&](auto* list, auto value) {
      const auto begin = list->begin() + first;
      *begin = std::move(value);
      list->erase(begin + 1, begin + static_cast<std::ptrdiff_t>(last - first));
    };
    Manifest::SegmentEntry entry = {number, segment->tokens(), segment->documents(), {}};
    for (const auto& part : entries) {
      for (const Arrivals& arrivals : part.arrivals) AddArrivals(arrivals, &entry.arrivals);
    }
    replace(&manifest->segments, std::move(entry));
    replace(segments, segment);
  }));
  for (const auto& entry : entries) {
    FT_RETURN_IF_ERROR(files_->Remove(SegmentPath(directory_, entry.number)));
  }
  return {};
}

}  // namespace foretoken
