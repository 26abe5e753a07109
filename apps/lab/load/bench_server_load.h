#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/lab/load/bench_server_stream.h"
#include "base/result.h"

namespace foretoken {

/// Where an OpenAI-compatible server listens.
struct ServerAddress {
  std::string origin;  ///< "http://host:port"
  std::string prefix;  ///< What comes before "/v1", usually nothing.
};

/// Reads "http://host:8080", "host:8080" or either with a path; a closing "/v1" is understood.
Result<ServerAddress> ParseServerUrl(std::string_view url);

/// How a server is reached.
struct ServerAccess {
  ServerAddress address;
  std::string api_key;     ///< Sent as a bearer token unless empty.
  double timeout_s = 600;  ///< Silence after which a request counts as failed.
};

/// The name of the first model that the server lists; an error where no server answers or it
/// refuses the key.
Result<std::string> FirstModel(const ServerAccess& access);

/// One POST of a streaming completion.
struct LoadRequest {
  std::string path;  ///< "/v1/chat/completions" or "/v1/completions"
  std::string body;
};

/// In which order and how fast requests are sent.
struct LoadShape {
  int concurrency = 1;     ///< Connections.
  double rate = 0;         ///< Poisson arrivals per second; 0: each connection sends on at once.
  std::uint64_t seed = 0;  ///< The seed of the arrivals.
};

/// When each of `count` requests arrives, in nanoseconds after the start: ascending, with
/// exponential gaps of mean 1 / rate; all 0 where the rate is 0.
std::vector<std::int64_t> ArrivalTimes(const LoadShape& shape, std::size_t count);

/// Sends all requests and waits for their replies; records in the order of requests. `on_done` is
/// called after each, from several threads, one at a time.
std::vector<LoadRecord> RunLoad(const ServerAccess& access,
                                const std::vector<LoadRequest>& requests, const LoadShape& shape,
                                const std::function<void()>& on_done);

}  // namespace foretoken
