#include "text/hub/hub_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace foretoken {

std::string HubClient::UrlOf(const HubFile& file, const std::string& commit) const {
  return fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, name_.repository, commit,
                     EscapeUrl(file.path));
}

Error HubClient::Explain(const Fetch& fetch, Error error) const {
  constexpr int kNeedsToken = 401;
  constexpr int kForbidden = 403;
  constexpr int kNotFound = 404;
  const std::string& repository = name_.repository;
  const std::string said =
      fetch.error_message.empty() ? "" : fmt::format(" (it says: {})", fetch.error_message);
  if (fetch.error_code == "GatedRepo") {
    error.message = fmt::format(
        "{0} is gated: {1} gives it to those who have accepted its terms at {1}/{0} and send their "
        "token (HF_TOKEN)",
        repository, settings_.endpoint);
  } else if (fetch.status == kNeedsToken || fetch.status == kForbidden) {
    error.message =
        fmt::format("{} does not let {} be read {}: it is private or does not exist{}",
                    settings_.endpoint, repository,
                    settings_.token.empty() ? "without a token, which HF_TOKEN gives"
                                            : "with this token, which HF_TOKEN or a login gives",
                    said);
  } else if (fetch.status == kNotFound && fetch.error_code == "RevisionNotFound") {
    error.message = fmt::format("{} has no revision '{}'", repository, name_.revision());
  } else if (fetch.status == kNotFound) {
    error.message = fmt::format("{} has no {}{}", settings_.endpoint, repository, said);
  }
  return error;
}

Status HubClient::FetchAll(std::span<Fetch> fetches) {
  constexpr int kFirstRefusal = 400;
  Status status = http_.FetchAll(fetches);
  if (status.ok() || status.error().code == ErrorCode::kCancelled) return status;
  const auto refused = std::ranges::find_if(
      fetches, [](const Fetch& fetch) { return fetch.status >= kFirstRefusal; });
  return refused == fetches.end() ? status.error() : Explain(*refused, status.error());
}

Status HubClient::AskForContents(std::span<HubFile> files, const std::string& commit) {
  std::vector<HubFile*> unknown;
  std::vector<Fetch> fetches;
  for (HubFile& file : files) {
    if (!file.hash.empty()) continue;
    unknown.push_back(&file);
    fetches.push_back(
        {.url = UrlOf(file, commit),
         .asks_only = true,
         .begin = []() -> Result<std::optional<ByteRange>> { return std::optional<ByteRange>(); }});
  }
  FT_RETURN_IF_ERROR(FetchAll(fetches));
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const Fetch& said = fetches[i];
    if (!said.told_size || (!IsSha256(said.etag) && !IsCommit(said.etag))) {
      return Invalid(
          "{} says neither in its listing nor of the file what hash it must have, so it cannot be "
          "checked: HF_ENDPOINT names another hub",
          said.url);
    }
    unknown[i]->hash = said.etag;
    unknown[i]->size = *said.told_size;
  }
  return {};
}

Result<HubListing> HubClient::List() {
  constexpr std::size_t kMostBytes = 64 << 20;
  const std::string url =
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint, name_.repository,
                  EscapeUrl(name_.revision(), /*slashes=*/false));
  std::string text;
  Fetch fetch{.url = url,
              .begin = [&text]() -> Result<std::optional<ByteRange>> {
                text.clear();
                return std::optional<ByteRange>();
              },
              .take = [&](std::string_view bytes) -> Status {
                if (text.size() + bytes.size() > kMostBytes) {
                  return Invalid("{} answers without an end", url);
                }
                text += bytes;
                return {};
              },
              // Somebody waits, and the cache may do.
              .tries = 3};
  FT_RETURN_IF_ERROR(FetchAll({&fetch, 1}));
  return ParseListing(text, url);
}

}  // namespace foretoken
