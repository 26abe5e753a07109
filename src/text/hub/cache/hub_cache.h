#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/hub/repository/listing.h"

namespace foretoken {

/// A file of a cached revision.
struct CachedFile {
  std::string path;  ///< Within the repository.
  std::uint64_t size = 0;
  std::filesystem::path blob;  ///< What it links to; itself where the cache has no links.
};

/// A revision of a model as far as it is cached.
struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;  ///< The branches and tags that were this commit when fetched.
  std::vector<CachedFile> files;  ///< By path; links that lead nowhere are left out.

  /// The size of its files, those that are the same counted once.
  std::uint64_t bytes() const;
};

/// One model of the Hub's cache, in the layout that its own tools share:
///
///   models--ORG--NAME/blobs/HASH                  the content of files
///   models--ORG--NAME/snapshots/COMMIT/PATH       links to blobs
///   models--ORG--NAME/refs/REVISION               the commit that a branch or tag was
///   models--ORG--NAME/trees/COMMIT.json           a listing that those tools keep
///   .locks/models--ORG--NAME/HASH.lock            held by whoever fetches that blob
///
/// A file is in a snapshot once its blob is whole, and a revision in refs once all that was wanted
/// of it is in its snapshot. Where the file system has no links, a snapshot has the files
/// themselves, and blobs has none of them.
class CachedModel {
 public:
  CachedModel(const std::filesystem::path& cache, std::string_view repository);

  std::filesystem::path folder() const { return folder_; }
  std::filesystem::path Blob(std::string_view hash) const { return folder_ / "blobs" / hash; }
  std::filesystem::path Snapshot(std::string_view commit) const {
    return folder_ / "snapshots" / commit;
  }
  /// The lock of a blob, by its hash; "foretoken" is held by whoever of this program fetches
  /// (shared) or removes (exclusive).
  std::filesystem::path Lock(std::string_view name) const;

  /// Makes its folders.
  Status Create() const;
  /// Puts a blob that is there into a snapshot, under all of these paths.
  Status Link(std::string_view hash, std::string_view commit,
              std::span<const std::string> paths) const;
  /// Whether a commit's snapshot has that file.
  bool Holds(std::string_view commit, const HubFile& file) const;
  /// Says which commit a branch or tag is; writes nothing where that is said already.
  Status WriteRef(const std::string& revision, std::string_view commit) const;

  /// The commit that a revision was when it was fetched: itself where it is one.
  std::optional<std::string> CommitOf(std::string_view revision) const;
  /// What is cached of a commit; no files where nothing is.
  CachedRevision Revision(const std::string& commit) const;
  std::vector<CachedRevision> Revisions() const;

 private:
  Status LinkOne(std::string_view hash, std::string_view commit, const std::string& path,
                 bool last) const;

  std::filesystem::path cache_;
  std::filesystem::path folder_;
  std::filesystem::path locks_;
};

/// The repositories in a cache, "ORG/NAME" or NAME alone, sorted.
std::vector<std::string> CachedRepositories(const std::filesystem::path& cache);

/// What of a model is to be removed: everything, a revision, or files of a revision.
struct Removal {
  std::string commit;              ///< Empty: all revisions.
  std::vector<std::string> paths;  ///< Empty: all files.
};

/// Removes links and refs, and then every blob that no snapshot uses; returns the bytes that were
/// freed. kUnavailable where something of it is being fetched.
Result<std::uint64_t> RemoveCached(const std::filesystem::path& cache, std::string_view repository,
                                   const Removal& removal);

}  // namespace foretoken
