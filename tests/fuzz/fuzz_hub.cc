// What a hub says of a model, and what somebody calls it: whatever comes is read or refused in one
// sentence, and nothing that is read leads out of the cache.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/hub/repository/choose_files.h"
#include "text/hub/repository/listing.h"
#include "text/hub/repository/model_name.h"

namespace {

using namespace foretoken;  // NOLINT: a program of its own.

void CheckSentence(const Error& error) {
  FT_CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos);
}

bool StaysBelow(const std::string& path) {
  return !path.starts_with('/') && ("/" + path + "/").find("/../") == std::string::npos;
}

void CheckChoice(const std::vector<std::string>& paths, const ModelName& name) {
  const Result<ModelFiles> files = ChooseFiles(paths, name);
  if (!files.ok()) return CheckSentence(files.error());
  FT_CHECK(!files->paths.empty());
  for (const std::string& path : files->paths) {
    FT_CHECK(std::ranges::find(paths, path) != paths.end());
  }
  FT_CHECK(files->entry.empty() || files->entry == files->paths.front());
}

void CheckListing(std::string_view text, const ModelName& name) {
  const Result<HubListing> listing = ParseListing(text, "fuzz");
  if (!listing.ok()) return CheckSentence(listing.error());
  FT_CHECK(IsCommit(listing->commit));
  std::vector<std::string> paths;
  for (const HubFile& file : listing->files) {
    FT_CHECK(StaysBelow(file.path) && file.size <= 100'000'000'000'000);
    FT_CHECK(file.hash.find_first_not_of("0123456789abcdef") == std::string::npos);
    FT_CHECK(file.hash.empty() || file.hash.size() == 40 || file.hash_is_sha256());
    paths.push_back(file.path);
  }
  CheckChoice(paths, ModelName{.repository = "org/name"});
  CheckChoice(paths, name);
}

}  // namespace

// A name, a line end, and a listing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view text = input.substr(0, input.find('\n'));
  const Result<ModelName> name = ParseModelName(text);
  if (name.ok()) {
    // However it was written, its own form says the same.
    const Result<ModelName> again = ParseModelName(name->Text());
    FT_CHECK(again.ok() && again->Text() == name->Text());
    FT_CHECK(again->repository == name->repository && again->part == name->part);
    FT_CHECK(name->repository.find("..") == std::string::npos);
    FT_CHECK(StaysBelow(name->revision()) && StaysBelow(name->part));
  } else {
    CheckSentence(name.error());
  }
  const std::string_view listing = input.substr(std::min(text.size() + 1, input.size()));
  CheckListing(listing, name.ok() ? *name : ModelName{.repository = "org/name", .part = "Q8_0"});
  return 0;
}
