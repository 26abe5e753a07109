#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "text/hub/hub_settings.h"
#include "text/hub/repository/listing.h"
#include "text/hub/repository/model_name.h"
#include "text/hub/transfer/http_client.h"

namespace foretoken {

/// A hub's HTTP API, for one model.
class HubClient {
 public:
  /// All of these must outlive this.
  HubClient(const ModelName& name, const HubSettings& settings,
            const std::function<bool()>& cancelled)
      : name_(name), settings_(settings), http_(settings, cancelled) {}

  /// What the repository holds at the revision. kUnavailable where the hub cannot be reached.
  Result<HubListing> List();
  /// Asks, file by file, for the sizes and hashes that the listing of a commit did not say.
  Status AskForContents(std::span<HubFile> files, const std::string& commit);
  std::string UrlOf(const HubFile& file, const std::string& commit) const;
  /// HttpClient::FetchAll of what UrlOf gives; an error says what the hub's refusal means.
  Status FetchAll(std::span<Fetch> fetches);

 private:
  Error Explain(const Fetch& fetch, Error error) const;

  const ModelName& name_;
  const HubSettings& settings_;
  HttpClient http_;
};

}  // namespace foretoken
