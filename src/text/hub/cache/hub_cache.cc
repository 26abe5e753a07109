#include "text/hub/cache/hub_cache.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/files/read_file.h"
#include "base/text/text.h"
#include "text/hub/cache/file_lock.h"
#include "text/hub/cache/own_files.h"
#include "text/hub/repository/model_name.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModels = "models--";
constexpr std::string_view kBetween = "--";

Status MakeFolders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return CannotWrite(path, error.value());
  return {};
}

// Whether a file system that refuses a symbolic link has none.
bool HasNoLinks(const std::error_code& error) {
  return error.value() == EPERM || error.value() == EOPNOTSUPP || error.value() == ENOSYS;
}

// The regular files at or below `folder`, links among them, by their paths from `base`.
template <typename Visit>
void VisitFiles(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) visit(at->path());
  }
}

fs::path TargetOf(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  return error ? file : target;
}

std::set<fs::path> UsedBlobs(const CachedModel& model) {
  std::set<fs::path> used;
  for (const CachedRevision& revision : model.Revisions()) {
    for (const CachedFile& file : revision.files) used.insert(file.blob);
  }
  return used;
}

// Frees the blobs that no snapshot uses, and what is left of interrupted fetches. What somebody
// fetches at this moment stays.
std::uint64_t RemoveUnusedBlobs(const CachedModel& model) {
  const std::set<fs::path> used = UsedBlobs(model);
  std::vector<fs::path> unused;
  std::error_code unreadable;
  for (fs::directory_iterator at(model.folder() / "blobs", unreadable), end;
       !unreadable && at != end; at.increment(unreadable)) {
    if (!used.contains(TargetOf(at->path()))) unused.push_back(at->path());
  }
  std::uint64_t freed = 0;
  for (const fs::path& blob : unused) {
    const std::string name = blob.filename().string();
    const auto lock =
        FileLock::Try(model.Lock(name.substr(0, name.find('.'))), FileLock::Kind::kExclusive);
    if (!lock.ok() || !*lock) continue;
    std::error_code ignored;
    const std::uint64_t size = fs::is_symlink(blob, ignored) ? 0 : fs::file_size(blob, ignored);
    std::error_code error;
    if (fs::remove(blob, error) && !error) freed += size;
  }
  return freed;
}

// Removes a file or folder, and the folders above it, below `root`, that are empty then.
Status RemoveBelow(const fs::path& root, const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return CannotWrite(path, error.value());
  for (fs::path at = path.parent_path(); at != root && rmdir(at.c_str()) == 0;) {
    at = at.parent_path();
  }
  return {};
}

// Removes the links of a revision's files, and what is left of it where no file is. Refs first:
// none may name a commit that is not there.
Status RemoveFiles(const CachedModel& model, CachedRevision revision,
                   const std::vector<std::string>& paths) {
  const bool all = paths.empty();
  std::erase_if(revision.files, [&](const CachedFile& file) {
    return all || std::ranges::find(paths, file.path) != paths.end();
  });
  if (revision.files.empty()) {
    for (const std::string& ref : revision.refs) {
      FT_RETURN_IF_ERROR(RemoveBelow(model.folder() / "refs", model.folder() / "refs" / ref));
    }
    const fs::path trees = model.folder() / "trees";
    FT_RETURN_IF_ERROR(RemoveBelow(trees, trees / (revision.commit + ".json")));
    return RemoveBelow(model.folder() / "snapshots", model.Snapshot(revision.commit));
  }
  for (const std::string& path : paths) {
    FT_RETURN_IF_ERROR(
        RemoveBelow(model.Snapshot(revision.commit), model.Snapshot(revision.commit) / path));
  }
  return {};
}

}  // namespace

std::uint64_t CachedRevision::bytes() const {
  std::map<fs::path, std::uint64_t> blobs;
  for (const CachedFile& file : files) blobs[file.blob] = file.size;
  std::uint64_t sum = 0;
  for (const auto& [blob, size] : blobs) sum += size;
  return sum;
}

CachedModel::CachedModel(const fs::path& cache, std::string_view repository) {
  const std::string name = fmt::format("{}{}", kModels, ReplaceAll(repository, "/", kBetween));
  cache_ = cache;
  folder_ = cache / name;
  locks_ = cache / ".locks" / name;
}

fs::path CachedModel::Lock(std::string_view name) const {
  return locks_ / fmt::format("{}.lock", name);
}

Status CachedModel::Create() const {
  for (const char* part : {"blobs", "snapshots", "refs"}) {
    FT_RETURN_IF_ERROR(CheckLinks(cache_, folder_ / part));
    FT_RETURN_IF_ERROR(MakeFolders(folder_ / part));
  }
  return CheckLinks(cache_, locks_);
}

Status CachedModel::Link(std::string_view hash, std::string_view commit,
                         std::span<const std::string> paths) const {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    FT_RETURN_IF_ERROR(LinkOne(hash, commit, paths[i], /*last=*/i + 1 == paths.size()));
  }
  return {};
}

Status CachedModel::LinkOne(std::string_view hash, std::string_view commit, const std::string& path,
                            bool last) const {
  const fs::path blob = Blob(hash);
  const fs::path link = Snapshot(commit) / path;
  std::error_code error;
  if (fs::equivalent(link, blob, error)) return {};
  FT_RETURN_IF_ERROR(CheckLinks(cache_, link.parent_path()));
  FT_RETURN_IF_ERROR(MakeFolders(link.parent_path()));
  const fs::path temporary = FreshName(folder_ / "blobs");
  fs::create_symlink(blob.lexically_relative(link.parent_path()), temporary, error);
  if (HasNoLinks(error)) {
    // As the Hub's own tools do there: the file itself.
    error.clear();
    if (!last) {
      fs::copy_file(blob, temporary, error);
    } else {
      fs::rename(blob, temporary, error);
    }
  }
  if (!error) fs::rename(temporary, link, error);
  if (error) return CannotWrite(link, error.value());
  return {};
}

bool CachedModel::Holds(std::string_view commit, const HubFile& file) const {
  const fs::path path = Snapshot(commit) / file.path;
  std::error_code error;
  if (fs::is_symlink(path, error)) return fs::equivalent(path, Blob(file.hash), error);
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == file.size && !error;
}

Status CachedModel::WriteRef(const std::string& revision, std::string_view commit) const {
  if (CommitOf(revision) == commit) return {};
  const fs::path ref = folder_ / "refs" / revision;
  FT_RETURN_IF_ERROR(CheckLinks(cache_, ref.parent_path()));
  FT_RETURN_IF_ERROR(MakeFolders(ref.parent_path()));
  // Not beside it at first: whatever lies there is a ref.
  return WriteWhole(ref, folder_ / "blobs", commit);
}

std::optional<std::string> CachedModel::CommitOf(std::string_view revision) const {
  if (IsCommit(revision)) return std::string(revision);
  constexpr std::size_t kMostBytes = 128;
  const Result<std::string> text = ReadFile(folder_ / "refs" / revision, kMostBytes);
  if (!text.ok() || !IsCommit(Trim(*text))) return std::nullopt;
  return std::string(Trim(*text));
}

CachedRevision CachedModel::Revision(const std::string& commit) const {
  CachedRevision revision{.commit = commit};
  const fs::path snapshot = Snapshot(commit);
  VisitFiles(snapshot, [&](const fs::path& file) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(file, error);
    if (error) return;
    revision.files.push_back({file.lexically_relative(snapshot).string(), size, TargetOf(file)});
  });
  std::ranges::sort(revision.files, {}, &CachedFile::path);
  const fs::path refs = folder_ / "refs";
  VisitFiles(refs, [&](const fs::path& ref) {
    const std::string name = ref.lexically_relative(refs).string();
    if (CommitOf(name) == commit) revision.refs.push_back(name);
  });
  std::ranges::sort(revision.refs);
  return revision;
}

std::vector<CachedRevision> CachedModel::Revisions() const {
  std::vector<CachedRevision> revisions;
  std::error_code error;
  for (fs::directory_iterator at(folder_ / "snapshots", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    const std::string commit = at->path().filename().string();
    if (at->is_directory(ignored) && IsCommit(commit)) revisions.push_back(Revision(commit));
  }
  std::ranges::sort(revisions, {}, &CachedRevision::commit);
  return revisions;
}

std::vector<std::string> CachedRepositories(const fs::path& cache) {
  std::vector<std::string> repositories;
  std::error_code error;
  for (fs::directory_iterator at(cache, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    std::string name = at->path().filename().string();
    if (!name.starts_with(kModels) || !at->is_directory(ignored)) continue;
    name.erase(0, kModels.size());
    repositories.push_back(ReplaceAll(name, kBetween, "/"));
  }
  std::ranges::sort(repositories);
  return repositories;
}

Result<std::uint64_t> RemoveCached(const fs::path& cache, std::string_view repository,
                                   const Removal& removal) {
  const CachedModel model(cache, repository);
  const auto lock = FileLock::Try(model.Lock("foretoken"), FileLock::Kind::kExclusive);
  if (!lock.ok()) return lock.error();
  if (!*lock) {
    return Unavailable("{} is being fetched or removed by another process: try again afterwards",
                       repository);
  }
  for (CachedRevision& revision : model.Revisions()) {
    if (!removal.commit.empty() && revision.commit != removal.commit) continue;
    FT_RETURN_IF_ERROR(RemoveFiles(model, std::move(revision), removal.paths));
  }
  const std::uint64_t freed = RemoveUnusedBlobs(model);
  std::error_code ignored;
  if (model.Revisions().empty() && fs::is_empty(model.folder() / "blobs", ignored)) {
    std::error_code error;
    fs::remove_all(model.folder(), error);
    if (error) return CannotWrite(model.folder(), error.value());
  }
  return freed;
}

}  // namespace foretoken
