#include "apps/lab/load/bench_server_load.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/numbers/philox.h"
#include "base/text/utf8.h"
#include "base/threads/clock.h"
#include "json/fields.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr long kConnectSeconds = 10;
constexpr std::size_t kShownOfReply = 300;

// A connection to a server, which is kept from request to request.
class Connection {
 public:
  // Takes the next bytes of a reply; false ends the reply.
  using Take = std::function<bool(std::string_view)>;

  explicit Connection(const ServerAccess& access)
      : access_(access),
        easy_(curl_easy_init(), curl_easy_cleanup),
        headers_(nullptr, curl_slist_free_all) {
    FT_CHECK(easy_ != nullptr);
    AddHeader("Content-Type: application/json");
    AddHeader("Accept: text/event-stream, */*");
    AddHeader("Expect:");  // A long body is sent at once, not when the server says so.
    if (!access.api_key.empty()) AddHeader("Authorization: Bearer " + access.api_key);
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_PROXY, "");  // What stands between would be measured too.
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    Set(CURLOPT_WRITEFUNCTION, &Connection::OnBytes);
    Set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    Set(CURLOPT_XFERINFOFUNCTION, &Connection::OnProgress);
    Set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
    Set(CURLOPT_NOPROGRESS, 0L);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Posts `body`, or gets where it is null, and returns when the reply has ended.
  CURLcode Send(const std::string& path, const std::string* body, Take take) {
    take_ = std::move(take);
    moved_ns_ = NowNs();
    Set(CURLOPT_URL, (access_.address.origin + access_.address.prefix + path).c_str());
    if (body != nullptr) {
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
      Set(CURLOPT_POSTFIELDS, body->c_str());
    }
    return curl_easy_perform(easy_.get());
  }

  // The HTTP status of the reply that comes or has come last.
  int status() const {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

 private:
  static std::size_t OnBytes(char* bytes, std::size_t size, std::size_t count, void* connection) {
    auto* const self = static_cast<Connection*>(connection);
    self->moved_ns_ = NowNs();
    return self->take_({bytes, size * count}) ? size * count : 0;
  }

  // Ends a reply that has been silent for too long. curl calls this once a second at least.
  static int OnProgress(void* connection, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto* const self = static_cast<const Connection*>(connection);
    return static_cast<double>(NowNs() - self->moved_ns_) > self->access_.timeout_s * 1e9 ? 1 : 0;
  }

  void AddHeader(const std::string& header) {
    curl_slist* const longer = curl_slist_append(headers_.get(), header.c_str());
    FT_CHECK(longer != nullptr);
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(easy_.get(), option, value);
    FT_CHECK(code == CURLE_OK, "option {}: {}", static_cast<int>(option), curl_easy_strerror(code));
  }

  const ServerAccess& access_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_;
  Take take_;
  std::int64_t moved_ns_ = 0;  // When the request began or its last bytes came.
};

// What an error reply says: OpenAI's message where it has that shape, else its beginning.
std::string ReplyMessage(const std::string& body) {
  const Json reply = Json::Parse(body);
  const std::string message = Text(Field(Field(reply, "error"), "message"));
  return message.empty() ? Shortened(body, kShownOfReply) : message;
}

// Names a failure of the transport.
std::string TransportError(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:  // Only connecting has a limit that curl knows.
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return "connection";
    case CURLE_ABORTED_BY_CALLBACK:
      return "timeout";
    default:
      return "cut off";
  }
}

// Sends a request and times the reply.
void Send(Connection* connection, const LoadRequest& request, LoadRecord* record) {
  SseReader reader;
  std::string refusal;
  const CURLcode code = connection->Send(request.path, &request.body, [&](std::string_view bytes) {
    const std::int64_t now_ns = NowNs();
    if (connection->status() != 200) {
      refusal += bytes;
    } else {
      reader.Feed(bytes, [&](std::string_view data) { record->OnEvent(data, now_ns); });
    }
    return record->ok();
  });
  record->end_ns = NowNs();
  const int status = connection->status();
  if (!record->ok()) return;  // By what the stream said.
  if (code != CURLE_OK) {
    record->error = TransportError(code);
    record->message = curl_easy_strerror(code);
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
  const std::string path = "/v1/models";
  const std::string url = access.address.origin + access.address.prefix + path;
  Connection connection(access);
  std::string body;
  const CURLcode code = connection.Send(path, nullptr, [&](std::string_view bytes) {
    body += bytes;
    return true;
  });
  const int status = connection.status();
  if (code != CURLE_OK) {
    return Unavailable("no server answers at {} ({})", url, curl_easy_strerror(code));
  }
  if (status == 401 || status == 403) {
    return Invalid("{} refuses the API key (HTTP {}); give it by --api-key", url, status);
  }
  const Json models = Json::Parse(body);
  if (status == 200 && models.is_object()) {
    const Json* const first = models.Find("/data/0/id");
    if (first != nullptr && first->is_string()) return first->text();
  }
  return Invalid(
      "{} lists no model (HTTP {}); is this an OpenAI-compatible server? --server-model names one",
      url, status);
}

std::vector<std::int64_t> ArrivalTimes(const LoadShape& shape, std::size_t count) {
  std::vector<std::int64_t> times(count, 0);
  if (shape.rate <= 0) return times;
  double at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    times[i] = at;
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
    Connection connection(access);
    for (std::size_t i = next++; i < requests.size(); i = next++) {
      LoadRecord& record = records[i];
      const std::int64_t arrival_ns = begin_ns + arrivals[i];
      if (shape.rate > 0) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(arrival_ns - NowNs()));
      }
      record.start_ns = shape.rate > 0 ? arrival_ns : NowNs();
      Send(&connection, requests[i], &record);
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
