#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/datastore/datastore.h"
#include "core/datastore/index/segment_search.h"

namespace foretoken {

/// What one namespace sees: the documents that everybody shares, and its own. The namespace
/// "shared" is filled by `foretoken datastore build` and only read here; live entries go to the
/// tenant's own, which no other tenant reads.
class DatastoreTenant {
 public:
  /// `shared` must outlive it; each may be null. Without `learns` nothing is added to its own.
  DatastoreTenant(const Datastore* shared, std::unique_ptr<Datastore> own, bool learns);

  /// The segments as they are now, valid until the next call. By one thread only.
  SegmentList Segments();

  /// Takes a finished document (from any thread); does nothing where it may not learn.
  void Learn(std::span<const Token> document);
  /// The same for what follows the first `prompt_tokens` of `tokens`, with the last few of these,
  /// by which its beginning can be found again.
  void LearnOutput(std::span<const Token> tokens, int prompt_tokens);
  /// Returns when everything learned is on disk.
  Status Flush() { return learns_ ? own_->Flush() : Status(); }
  LearningState learning() const { return own_ != nullptr ? own_->learning() : LearningState(); }
  /// Where it may learn and has nothing of its own, its files go, so that a name that a request
  /// made up leaves no trace. Only its destructor may follow.
  void RemoveIfEmpty();
  /// Whether it has nothing of its own.
  bool empty() const { return own_ == nullptr || own_->empty(); }

 private:
  std::unique_ptr<Datastore> own_;
  bool learns_;
  std::array<SnapshotReader, 2> readers_;  // One reads the shared datastore, one its own.
  std::vector<std::shared_ptr<const Segment>> segments_;
};

/// A datastore's directory with all its namespaces. Thread-safe.
class DatastoreDirectory {
 public:
  static constexpr std::string_view kShared = "shared";
  /// Namespaces open at once, at most: each has files and threads of its own. Those that nobody
  /// holds make room for others, empty ones first, then that which was asked for longest ago.
  static constexpr std::size_t kMaxTenants = 256;

  /// Opens the shared namespace, if there is one, for reading. With `learn` tenants learn and are
  /// made where they are missing. Without it a directory that is not there is refused.
  static Result<std::unique_ptr<DatastoreDirectory>> Open(const std::filesystem::path& directory,
                                                          DatastoreOptions options, bool learn);

  /// An error for `shared` and for impossible names.
  static Status CheckTenantName(std::string_view name);

  /// The tenant of this name, opened where it is not; the directory outlives it. Refuses `shared`,
  /// impossible names, and more than kMaxTenants in use (kUnavailable).
  Result<std::shared_ptr<DatastoreTenant>> Tenant(std::string_view name);

  /// Returns when everything that tenants learned is on disk.
  Status Flush();
  /// The state of all tenants together: a failure of any of them, and how much was lost by all.
  LearningState learning();

 private:
  DatastoreDirectory(std::filesystem::path directory, DatastoreOptions options, bool learn)
      : directory_(std::move(directory)), options_(std::move(options)), learn_(learn) {}

  struct OpenTenant {
    std::shared_ptr<DatastoreTenant> tenant;
    std::uint64_t asked = 0;  // When, in calls of Tenant.
  };

  Status MakeRoom();

  std::filesystem::path directory_;
  DatastoreOptions options_;
  bool learn_;
  std::unique_ptr<Datastore> shared_;
  std::mutex mutex_;
  std::map<std::string, OpenTenant, std::less<>> tenants_;
  std::uint64_t calls_ = 0;        // Calls of Tenant.
  std::uint64_t closed_lost_ = 0;  // Documents that tenants lost which were closed since.
};

}  // namespace foretoken
