#include "text/hub/repository/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text/printable.h"
#include "json/json_object.h"
#include "text/hub/repository/model_name.h"

namespace foretoken {
namespace {

constexpr std::size_t kMostFiles = 100'000;
constexpr double kMostFileBytes = 1e14;

// A file's size and hash: those of its content, not those of the pointer that git has in place of a
// large file. A mirror may leave them out.
void ReadContent(JsonObject* entry, HubFile* file) {
  if (entry->Has("lfs")) {
    JsonObject large = entry->Child("lfs");
    file->size = static_cast<std::uint64_t>(large.Number("size", 0, kMostFileBytes));
    file->hash = large.Text("sha256");
    if (large.ok() && !IsSha256(file->hash)) large.Refuse("has a sha256 that is none");
    return;
  }
  if (!entry->Has("size") || !entry->Has("blobId")) return;
  file->size = static_cast<std::uint64_t>(entry->Number("size", 0, kMostFileBytes));
  file->hash = entry->Text("blobId");
  if (entry->ok() && !IsCommit(file->hash)) entry->Refuse("has a blobId that is none");
}

}  // namespace

bool IsSha256(std::string_view text) {
  constexpr std::size_t kDigits = 64;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<HubListing> ParseListing(std::string_view text, std::string_view where) {
  const Json json = Json::Parse(text);
  if (json.is_discarded()) {
    return Invalid("{} is no JSON: is that address a hub?", where);
  }
  Status status;
  JsonObject object(&json, std::string(where), &status);
  HubListing listing{.commit = object.Text("sha")};
  if (object.ok() && !IsCommit(listing.commit)) object.Refuse("has an sha that is no commit");
  std::set<std::string> paths;
  for (JsonObject& entry : object.Objects("siblings", kMostFiles)) {
    HubFile file{.path = entry.Text("rfilename")};
    if (entry.ok() && !IsSafePath(file.path)) {
      entry.Refuse(fmt::format("names the file '{}', which cannot be one", Printable(file.path)));
    }
    if (entry.ok() && !paths.insert(file.path).second) {
      entry.Refuse(fmt::format("names the file '{}' again", Printable(file.path)));
    }
    ReadContent(&entry, &file);
    if (!entry.ok()) break;
    listing.files.push_back(std::move(file));
  }
  FT_RETURN_IF_ERROR(status);
  return listing;
}

}  // namespace foretoken
