#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "core/datastore/index/segment.h"
#include "core/datastore/storage/entry_log.h"
#include "core/datastore/storage/files.h"
#include "core/datastore/storage/maintenance.h"
#include "core/datastore/storage/manifest.h"
#include "foretoken/types.h"

namespace foretoken {

struct DatastoreOptions {
  TokenizerIdentity tokenizer;
  DatastoreLimits limits;
  std::uint64_t seal_tokens = std::uint64_t{1} << 20;  ///< Live tokens that make a segment.
  int threads = 1;                                     ///< For sorting.
  std::chrono::milliseconds retry_after{5000};  ///< Between two attempts to write after a failure.
  std::function<int()> today;  ///< Days since the first of January 1970; null: the clock's, UTC.
  bool read_only = false;      ///< Shows what is there now; takes no lock, learns nothing.
  std::shared_ptr<FileSystem> files;  ///< The operating system's where null.
  /// Told when nothing can be written, and when that works again; may be empty.
  std::function<void(std::string_view)> log;
};

/// How learning goes.
struct LearningState {
  Status failure;          ///< Why nothing can be written now, or what was lost of it.
  std::uint64_t lost = 0;  ///< Documents that could not be kept, since the start.
};

/// A document where it lies.
struct StoredDocument {
  std::uint64_t number = 0;       ///< From 1 on, oldest first; another once older ones are gone.
  std::span<const Token> tokens;  ///< Valid during the call that shows it.
  int day = 0;                    ///< When it came (Arrivals), at the latest.
};

/// What a datastore holds at one moment, oldest first. Immutable.
struct Snapshot {
  std::vector<std::shared_ptr<const Segment>> segments;
  std::vector<std::vector<Arrivals>> arrivals;  ///< When each segment's documents came.
  std::uint64_t tokens() const;
  std::uint64_t documents() const;
  /// Calls `visit` with every document in order.
  void VisitDocuments(const std::function<void(const StoredDocument&)>& visit) const;
};

/// What Datastore::Remove has removed.
struct RemovedDocuments {
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
  int segments = 0;  ///< How many segments held them; they were written anew or are gone.
};

/// Documents of one tokenizer in a directory: immutable segments, and a log of live entries that
/// become segments later. Learning, merging and eviction happen on threads of low priority.
/// Thread-safe. At any kill a reopened datastore has every document that was flushed, once.
class Datastore {
 public:
  /// Opens the directory, which is made where it is missing (but not for reading only). Refuses a
  /// damaged one, one of another tokenizer and one that another process writes to.
  static Result<std::unique_ptr<Datastore>> Open(const std::filesystem::path& directory,
                                                 const DatastoreOptions& options);
  /// Writes down what was learned; a merge under way is given up.
  ~Datastore();
  Datastore(const Datastore&) = delete;
  Datastore& operator=(const Datastore&) = delete;

  const std::filesystem::path& directory() const { return directory_; }
  /// What the manifest says: on disk without the log.
  Manifest manifest() const;
  std::shared_ptr<const Snapshot> snapshot() const;
  /// Changes whenever snapshot() does; one atomic load (SnapshotReader).
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  /// Takes a finished document and returns at once; it is found soon after. Refuses tokens outside
  /// the vocabulary. Where the disk cannot keep up or has failed it is lost, and counted.
  Status Learn(std::span<const Token> document);
  /// Returns when everything learned before is on disk and found, or with the first failure.
  Status Flush();
  LearningState learning() const;
  /// Whether nothing is there, nor waits to be written.
  bool empty() const;
  /// Removes the files of a datastore that is empty, and the directory if nothing else is in it.
  static Status RemoveEmpty(std::unique_ptr<Datastore> datastore);
  /// Adds documents as a segment of their own, sorted and written by the caller's thread.
  Status Import(TokenText text);
  /// Makes segments of all live entries and merges segments as far as the limits allow.
  Status Compact();
  /// Removes the documents that were there when it was called and for which `unwanted`, which is
  /// asked once for each, oldest first, is true. No byte of them is left in any file when it
  /// returns; when it fails or the process ends meanwhile all of them are there or none.
  Result<RemovedDocuments> Remove(const std::function<bool(const StoredDocument&)>& unwanted);

 private:
  using Segments = std::vector<std::shared_ptr<const Segment>>;

  Datastore(std::filesystem::path directory, const DatastoreOptions& options);

  void StopThreads();
  Status CheckKept() const;

  // Opening.
  Status Recover();
  Status ReadAll();
  Status OpenSegments();
  Status RemoveLeftovers(std::vector<std::uint64_t>* logs);
  Status ReplayLogs(std::span<const std::uint64_t> logs);

  // The writer's thread: log, runs in memory, sealing.
  void WriterLoop();
  bool AwaitWriting(const Status& failure, std::uint64_t lost);
  Result<std::uint64_t> BeginLog();
  Status Record(std::span<const std::vector<Token>> documents);
  void AddRun(std::span<const std::vector<Token>> documents);
  Status Seal();
  Status SealNow();
  int Today() const;

  // The merger's thread.
  void MergerLoop();
  Result<bool> Maintain();
  Status Merge(std::size_t first, std::size_t last);

  // Changing what is there.
  // Changes what mutex_ guards and wakes whoever waits for it.
  template <typename Change>
  void Tell(const Change& change);
  std::uint64_t TakeNumber();
  Result<std::shared_ptr<const Segment>> Store(const Segment& segment, std::uint64_t number);
  Status Commit(const std::function<void(Manifest*, Segments*)>& edit);
  void Publish();
  void Reclaim();
  struct Rewriting;
  Result<Rewriting> Rewrite(const Segment& segment, const Manifest::SegmentEntry& entry,
                            const std::function<bool(const StoredDocument&)>& unwanted,
                            std::uint64_t* number);
  std::shared_ptr<const Segment> Join(std::span<const std::shared_ptr<const Segment>> segments,
                                      const std::atomic<bool>* cancelled) const;

  const std::filesystem::path directory_;
  const DatastoreOptions options_;
  const std::shared_ptr<FileSystem> files_;
  std::unique_ptr<DirectoryLock> lock_;

  std::mutex merging_;     // Held while segments are merged or evicted.
  std::mutex committing_;  // Held while the manifest is replaced; taken before mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  Manifest manifest_;
  Segments segments_;  // The manifest's.
  Segments runs_;      // Live entries: changed by the writer alone.
  int runs_day_ = 0;   // When they came, all on one day.
  std::shared_ptr<const Snapshot> current_;
  std::vector<std::shared_ptr<const Snapshot>> retired_;  // Until no reader has them.
  std::vector<std::vector<Token>> pending_;
  std::uint64_t pending_tokens_ = 0;
  std::uint64_t learned_ = 0;  // Documents that Learn took.
  std::uint64_t flushed_ = 0;  // Learned documents that are on disk.
  bool seal_wanted_ = false;
  bool merge_wanted_ = false;
  Status failure_;        // The writer's latest, until it can write again.
  Status merge_failure_;  // The merger's latest, until it can merge again.
  std::uint64_t lost_ = 0;

  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> stopping_{false};
  std::unique_ptr<EntryLogWriter> log_;  // The writer's.
  std::thread writer_;
  std::thread merger_;
};

/// One thread's view of a datastore: looks at a counter per query and takes a lock only when there
/// is something new.
class SnapshotReader {
 public:
  /// Null: there is nothing to see.
  explicit SnapshotReader(const Datastore* datastore) : datastore_(datastore) {}

  /// Looks again. True where that shows something new.
  bool Refresh() {
    if (datastore_ == nullptr || datastore_->version() == version_) return false;
    version_ = datastore_->version();
    snapshot_ = datastore_->snapshot();
    return true;
  }
  /// As of now. Stays valid until the next call.
  const Snapshot& Latest() {
    Refresh();
    return *snapshot_;
  }

 private:
  const Datastore* datastore_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<Snapshot>();
};

/// Where the documents of a namespace lie below a datastore's directory. Names are 1 to 64 letters,
/// digits, '-' and '_'.
Result<std::filesystem::path> NamespaceDirectory(const std::filesystem::path& directory,
                                                 std::string_view name);

}  // namespace foretoken
