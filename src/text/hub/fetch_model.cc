#include "text/hub/fetch_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/hub/cache/file_lock.h"
#include "text/hub/cache/hub_cache.h"
#include "text/hub/hub_client.h"
#include "text/hub/repository/choose_files.h"
#include "text/hub/repository/listing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// A model in the cache.
struct Found {
  fs::path path;
  bool certain = false;  // Whether the name could mean nothing else.
};

Result<Found> FindCached(const ModelName& name, const CachedModel& model) {
  const std::optional<std::string> commit = model.CommitOf(name.revision());
  const CachedRevision revision = commit ? model.Revision(*commit) : CachedRevision();
  if (revision.files.empty()) {
    return Invalid("the cache has nothing of {}", name.Text());
  }
  std::vector<std::string> paths;
  for (const CachedFile& file : revision.files) paths.push_back(file.path);
  const Result<ModelFiles> files = ChooseFiles(paths, name);
  if (!files.ok()) {
    return Invalid("the cache has not all of {}: by it, {}", name.Text(), files.error().message);
  }
  const fs::path snapshot = model.Snapshot(*commit);
  return Found{files->entry.empty() ? snapshot : snapshot / files->entry, files->certain};
}

// The files of the listing that make up the model, with sizes and hashes, small ones first: where
// something is wrong with a name or a token, they tell.
Result<std::vector<HubFile>> WithContents(HubClient* client, const HubListing& listing,
                                          const ModelFiles& chosen) {
  std::vector<HubFile> files;
  for (const HubFile& file : listing.files) {
    if (std::ranges::find(chosen.paths, file.path) != chosen.paths.end()) files.push_back(file);
  }
  FT_RETURN_IF_ERROR(client->AskForContents(files, listing.commit));
  std::ranges::stable_sort(files, {}, &HubFile::size);
  return files;
}

bool HasAll(const CachedModel& model, const std::string& commit, std::span<const HubFile> files) {
  return std::ranges::all_of(files, [&](const HubFile& file) { return model.Holds(commit, file); });
}

Status FetchFiles(std::span<const HubFile> files, const FileSource& source,
                  const HubSettings& settings, const FetchHooks& hooks) {
  std::uint64_t all = 0;
  std::uint64_t before = 0;
  for (const HubFile& file : files) all += file.size;
  for (const HubFile& file : files) {
    if (!source.model->Holds(source.commit, file)) {
      FT_RETURN_IF_ERROR(FetchFile(file, source, settings, hooks, before, all));
    }
    before += file.size;
  }
  return {};
}

// Together and last: nobody finds a part of what was wanted.
Status LinkFiles(const CachedModel& model, const std::string& commit,
                 std::span<const HubFile> files) {
  std::map<std::string, std::vector<std::string>> paths;  // By what lies there.
  for (const HubFile& file : files) {
    if (!model.Holds(commit, file)) paths[file.hash].push_back(file.path);
  }
  for (const auto& [hash, places] : paths) {
    FT_RETURN_IF_ERROR(model.Link(hash, commit, places));
  }
  return {};
}

Result<fs::path> FetchModel(const ModelName& name, const CachedModel& model,
                            const HubSettings& settings, const FetchHooks& hooks) {
  hooks.progress(fmt::format("Asking for {}", name.Text()), 0, 0);
  HubClient client(name, settings, hooks.cancelled);
  FT_ASSIGN_OR_RETURN(const HubListing listing, client.List());
  std::vector<std::string> paths;
  for (const HubFile& file : listing.files) paths.push_back(file.path);
  FT_ASSIGN_OR_RETURN(const ModelFiles chosen, ChooseFiles(paths, name));
  FT_ASSIGN_OR_RETURN(const std::vector<HubFile> files, WithContents(&client, listing, chosen));
  const fs::path snapshot = model.Snapshot(listing.commit);
  const fs::path entry = chosen.entry.empty() ? snapshot : snapshot / chosen.entry;
  // A cache that has it all need not be one that can be written to.
  const bool named = IsCommit(name.revision()) || model.CommitOf(name.revision()) == listing.commit;
  if (named && HasAll(model, listing.commit, files)) return entry;
  // Nobody removes what is about to be linked.
  FT_ASSIGN_OR_RETURN(const FileLock lock,
                      FileLock::Acquire(model.Lock("foretoken"), FileLock::Kind::kShared,
                                        hooks.cancelled, nullptr));
  FT_RETURN_IF_ERROR(model.Create());
  FT_RETURN_IF_ERROR(FetchFiles(files, {&client, &model, listing.commit}, settings, hooks));
  FT_RETURN_IF_ERROR(LinkFiles(model, listing.commit, files));
  if (!IsCommit(name.revision())) {
    FT_RETURN_IF_ERROR(model.WriteRef(name.revision(), listing.commit));
  }
  return entry;
}

Result<fs::path> CachedOnly(const Result<Found>& cached) {
  if (cached.ok()) return cached->path;
  return Invalid("{}, and HF_HUB_OFFLINE forbids to fetch it", cached.error().message);
}

}  // namespace

Result<fs::path> PullModel(const ModelName& name, const HubSettings& settings,
                           const FetchHooks& hooks) {
  const CachedModel model(settings.cache, name.repository);
  if (settings.offline) return CachedOnly(FindCached(name, model));
  return FetchModel(name, model, settings, hooks);
}

Result<fs::path> FindModel(const ModelName& name, const HubSettings& settings,
                           const FetchHooks& hooks) {
  const CachedModel model(settings.cache, name.repository);
  const Result<Found> cached = FindCached(name, model);
  if (settings.offline) return CachedOnly(cached);
  if (cached.ok() && cached->certain) return cached->path;
  Result<fs::path> fetched = FetchModel(name, model, settings, hooks);
  if (fetched.ok() || !cached.ok() || fetched.error().code != ErrorCode::kUnavailable) {
    return fetched;
  }
  hooks.warn(fmt::format("{}; what is cached of {} is used", fetched.error().message, name.Text()));
  return cached->path;
}

}  // namespace foretoken
