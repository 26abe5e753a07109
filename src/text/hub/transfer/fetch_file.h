#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/hub/cache/hub_cache.h"
#include "text/hub/hub_client.h"
#include "text/hub/hub_settings.h"
#include "text/hub/repository/listing.h"

namespace foretoken {

/// What whoever waits for a model is asked and told; none may be null.
struct FetchHooks {
  std::function<bool()> cancelled;
  /// What is being done, and how many bytes of how many are there.
  std::function<void(std::string_view doing, std::uint64_t done, std::uint64_t all)> progress;
  std::function<void(const std::string& warning)> warn;
};

/// A model's revision that is fetched, and where from and to.
struct FileSource {
  HubClient* client;
  const CachedModel* model;
  std::string commit;
};

/// Fetches a file into the cache's blobs where it is not there yet: in parts at once, from where
/// earlier tries have left off, under the blob's lock. It gets its name there when its size and
/// hash are right, and not before. Of the bytes that `hooks` are told, `before` are those of other
/// files, `all` those of all.
Status FetchFile(const HubFile& file, const FileSource& source, const HubSettings& settings,
                 const FetchHooks& hooks, std::uint64_t before, std::uint64_t all);

}  // namespace foretoken
