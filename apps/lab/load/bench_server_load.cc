#include "apps/lab/load/bench_server_load.h"

#include <fmt/core.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/numbers/philox.h"
#include "base/text/utf8.h"
#include "base/threads/clock.h"
#include "json/fields.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr double kConnectSeconds = 10;
constexpr std::size_t kShownOfReply = 300;

std::unique_ptr<httplib::Client> Connect(const ServerAccess& access) {
  auto client = std::make_unique<httplib::Client>(access.address.origin);
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  client->set_connection_timeout(std::chrono::duration<double>(kConnectSeconds));
  client->set_read_timeout(std::chrono::duration<double>(access.timeout_s));
  client->set_write_timeout(std::chrono::duration<double>(access.timeout_s));
  if (!access.api_key.empty()) client->set_bearer_token_auth(access.api_key);
  return client;
}

// What an error reply says: OpenAI's message where it has that shape, else its beginning.
std::string ReplyMessage(const std::string& body) {
  const Json reply = Json::Parse(body);
  const std::string message = Text(Field(Field(reply, "error"), "message"));
  return message.empty() ? Shortened(body, kShownOfReply) : message;
}

// Names a failure of the transport.
std::string TransportError(httplib::Error error, bool silent_too_long) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLServerVerification:
      return "connection";
    default:
      return silent_too_long ? "timeout" : "cut off";
  }
}

// Sends a request over a connection that `access` made, and times the reply.
void Send(httplib::Client* client, const ServerAccess& access, const LoadRequest& request,
          LoadRecord* record) {
  SseReader reader;
  int status = 0;
  std::string refusal;
  std::int64_t last_ns = NowNs();
  httplib::Request post;
  post.method = "POST";
  post.path = access.address.prefix + request.path;
  post.body = request.body;
  post.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  post.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  post.content_receiver = [&](const char* bytes, std::size_t size, std::uint64_t, std::uint64_t) {
    last_ns = NowNs();
    const std::string_view part(bytes, size);
    if (status != 200) {
      refusal += part;
    } else {
      reader.Feed(part, [&](std::string_view data) { record->OnEvent(data, last_ns); });
    }
    return record->ok();
  };
  httplib::Response response;
  httplib::Error error = httplib::Error::Success;
  const bool whole = client->send(post, response, error);
  record->end_ns = NowNs();
  const auto silence_s = static_cast<double>(record->end_ns - last_ns) / 1e9;
  if (!record->ok()) return;  // By what the stream said.
  if (!whole) {
    record->error = TransportError(error, silence_s >= 0.9 * access.timeout_s);
    record->message = httplib::to_string(error);
  } else if (status != 200) {
    record->error = fmt::format("http {}", status);
    record->message = ReplyMessage(refusal);
  } else if (!record->done && !record->finished) {
    record->error = "cut off";
    record->message = "the stream ended without a finish_reason and without [DONE]";
  } else if (record->chunk_ns.empty()) {
    record->error = "no text";
    record->message = "the reply held no text";
  }
}

}  // namespace

Result<ServerAddress> ParseServerUrl(std::string_view url) {
  const auto refuse = [&] {
    return Invalid("--server '{}' is not a server's address, like http://127.0.0.1:8080", url);
  };
  std::string_view rest = url;
  std::string scheme = "http";
  if (const std::size_t mark = rest.find("://"); mark != std::string_view::npos) {
    scheme = std::string(rest.substr(0, mark));
    rest.remove_prefix(mark + 3);
  }
  if (scheme != "http" && scheme != "https") return refuse();
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view host = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  const std::size_t colon = host.find(':');
  const bool bad_port =
      colon != std::string_view::npos && !host.starts_with('[') &&
      (colon + 1 == host.size() || host.find_first_not_of("0123456789", colon + 1) != host.npos);
  if (host.empty() || colon == 0 || bad_port || host.find_first_of(" ?#@") != host.npos) {
    return refuse();
  }
  return ServerAddress{fmt::format("{}://{}", scheme, host), std::string(path)};
}

Result<std::string> FirstModel(const ServerAccess& access) {
  const std::string path = access.address.prefix + "/v1/models";
  const std::string url = access.address.origin + path;
  const httplib::Result reply = Connect(access)->Get(path);
  if (!reply) {
    return Unavailable("no server answers at {} ({})", url, httplib::to_string(reply.error()));
  }
  if (reply->status == 401 || reply->status == 403) {
    return Invalid("{} refuses the API key (HTTP {}); give it by --api-key", url, reply->status);
  }
  const Json models = Json::Parse(reply->body);
  if (reply->status == 200 && models.is_object()) {
    const Json* const first = models.Find("/data/0/id");
    if (first != nullptr && first->is_string()) return first->text();
  }
  return Invalid(
      "{} lists no model (HTTP {}); is this an OpenAI-compatible server? --server-model names one",
      url, reply->status);
}

std::vector<std::int64_t> ArrivalTimes(const LoadShape& shape, std::size_t count) {
  std::vector<std::int64_t> times(count, 0);
  if (shape.rate <= 0) return times;
  double at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    times[i] = static_cast<std::int64_t>(at);
    const double u = UnitInterval(PhiloxDraw(shape.seed, i, 0, NoisePurpose::kScript));
    at += -std::log(u) / shape.rate * 1e9;
  }
  return times;
}

std::vector<LoadRecord> RunLoad(const ServerAccess& access,
                                const std::vector<LoadRequest>& requests, const LoadShape& shape,
                                const std::function<void()>& on_done) {
  std::vector<LoadRecord> records(requests.size());
  const std::vector<std::int64_t> arrivals = ArrivalTimes(shape, requests.size());
  std::atomic<std::size_t> next = 0;
  std::mutex done;
  const std::int64_t begin_ns = NowNs();
  const auto work = [&] {
    const auto client = Connect(access);
    for (std::size_t i = next++; i < requests.size(); i = next++) {
      LoadRecord& record = records[i];
      const std::int64_t arrival_ns = begin_ns + arrivals[i];
      if (shape.rate > 0) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(arrival_ns - NowNs()));
      }
      record.start_ns = shape.rate > 0 ? arrival_ns : NowNs();
      Send(client.get(), access, requests[i], &record);
      const std::lock_guard lock(done);
      on_done();
    }
  };
  std::vector<std::thread> threads;
  const std::size_t count = std::min<std::size_t>(shape.concurrency, requests.size());
  threads.reserve(count);
  try {
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (...) {  // Fewer would measure something else.
    next = requests.size();
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  return records;
}

}  // namespace foretoken
