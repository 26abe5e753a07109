#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

/// A file of a model on a hub.
struct HubFile {
  std::string path;  ///< Within the repository, safe to be made below a folder.
  std::uint64_t size = 0;
  /// What its content must have, and how the cache calls it: SHA-256 of large files (64 digits),
  /// else the SHA-1 that git gives it (40 digits). Empty, and with it the size unknown, where the
  /// listing does not say.
  std::string hash;

  bool hash_is_sha256() const { return hash.size() == 64; }
};

/// What a repository holds at a commit.
struct HubListing {
  std::string commit;
  std::vector<HubFile> files;
};

/// Whether a text is a SHA-256 in lower-case hexadecimal digits.
bool IsSha256(std::string_view text);

/// Reads a hub's answer to /api/models/ORG/NAME/revision/REVISION?blobs=true. What it says is not
/// trusted: paths, hashes and sizes that could not be are refused. `where` names it in errors.
Result<HubListing> ParseListing(std::string_view text, std::string_view where);

}  // namespace foretoken
