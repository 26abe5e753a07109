#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace foretoken {

/// Where models are fetched from and kept, and how patiently.
struct HubSettings {
  std::string endpoint;         ///< "https://HOST", without a slash at the end.
  std::filesystem::path cache;  ///< The folder that holds models--ORG--NAME.
  std::string token;            ///< Sent to the endpoint alone; empty: none.
  bool offline = false;         ///< Nothing is asked for: what the cache has must do.

  /// Before the first byte, and between two.
  std::chrono::milliseconds timeout{10'000};
  /// Before a request is tried again; doubled each time that nothing has come.
  std::chrono::milliseconds first_wait{500};
  int connections = 8;                           ///< Parts of a file that are fetched at once.
  std::uint64_t piece_bytes = 32 * 1024 * 1024;  ///< Bytes of such a part.
};

/// The settings that the variables (`environ`) make, as the Hub's own tools read them: HF_ENDPOINT;
/// HF_HUB_CACHE or HF_HOME or XDG_CACHE_HOME or HOME; HF_TOKEN or HF_TOKEN_PATH or a file `token`
/// in HF_HOME, and HF_HUB_DISABLE_IMPLICIT_TOKEN; HF_HUB_OFFLINE; HF_HUB_DOWNLOAD_TIMEOUT.
Result<HubSettings> ReadHubSettings(const char* const* variables);

}  // namespace foretoken
