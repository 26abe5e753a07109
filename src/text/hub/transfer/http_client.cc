#include "text/hub/transfer/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text/parse_number.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOk = 200;
constexpr int kPartialContent = 206;
constexpr long kMostRedirects = 10;
constexpr long kReadBytes = 256 * 1024;
constexpr std::chrono::seconds kLongestWait(300);  // Whatever Retry-After says.

template <typename Value>
void SetOption(CURL* easy, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  FT_CHECK(code == CURLE_OK, "option {}: {}", static_cast<int>(option), curl_easy_strerror(code));
}

// Failures that are the network's or the other side's, and may pass.
bool MayPass(CURLcode code) {
  constexpr std::array kPassing = {
      CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
      CURLE_PARTIAL_FILE,          CURLE_OPERATION_TIMEDOUT,   CURLE_SSL_CONNECT_ERROR,
      CURLE_GOT_NOTHING,           CURLE_SEND_ERROR,           CURLE_RECV_ERROR};
  return std::ranges::find(kPassing, code) != kPassing.end();
}
bool MayPass(int status) {
  constexpr int kTimeout = 408;
  constexpr int kTooMany = 429;
  return status == kTimeout || status == kTooMany || (status >= 500 && status <= 599);
}

// A header of the last answer, or of one before it that redirected (from 0 on).
std::string HeaderOf(CURL* easy, const char* name, int answer = -1) {
  curl_header* header = nullptr;
  const bool found = curl_easy_header(easy, name, 0, CURLH_HEADER, answer, &header) == CURLHE_OK;
  return found ? Printable(header->value) : std::string();
}

// "W/\"...\"" without what is around it.
std::string_view Unquoted(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() < 2 || !etag.starts_with('"') || !etag.ends_with('"')) return etag;
  return etag.substr(1, etag.size() - 2);
}

// "bytes 100-199/1000"
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> size;
};

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == text.npos || slash == text.npos || slash < dash) return std::nullopt;
  ContentRange range;
  std::uint64_t size = 0;
  if (!ParseNumber(text.substr(0, dash), &range.first) ||
      !ParseNumber(text.substr(dash + 1, slash - dash - 1), &range.last)) {
    return std::nullopt;
  }
  if (ParseNumber(text.substr(slash + 1), &size)) range.size = size;
  return range;
}

// A fetch under way: one try after another.
class Transfer {
 public:
  Transfer(Fetch* fetch, const HubSettings& settings, Clock::time_point now)
      : fetch_(fetch),
        settings_(settings),
        easy_(curl_easy_init(), curl_easy_cleanup),
        headers_(nullptr, curl_slist_free_all),
        start_at_(now),
        wait_(settings.first_wait) {
    FT_CHECK(easy_ != nullptr);
    Configure();
  }

  CURL* easy() { return easy_.get(); }
  Clock::time_point start_at() const { return start_at_; }
  // Whether nothing has come for too long. (curl's own limit is of a mean over some seconds.)
  bool StandsStill(Clock::time_point now) const { return now - moved_at_ > settings_.timeout; }

  // Makes ready for a try.
  Status Begin(Clock::time_point now) {
    moved_at_ = now;
    FT_ASSIGN_OR_RETURN(range_, fetch_->begin());
    received_ = 0;
    checked_ = false;
    failure_ = {};
    fetch_->ignores_ranges = false;
    const std::string range =
        range_ ? fmt::format("{}-{}", range_->begin, range_->end - 1) : std::string();
    SetOption(easy(), CURLOPT_RANGE, range_ ? range.c_str() : nullptr);
    return {};
  }

  // What a try has come to: true where the fetch is done, false where it is to be tried again from
  // start_at() on.
  Result<bool> End(CURLcode code, Clock::time_point now) {
    NoteAnswer();
    if (!failure_.ok()) return failure_.error();
    if (fetch_->asks_only && code == CURLE_OK && NoteContent()) return true;
    if (code == CURLE_OK && IsGood(fetch_->status)) {
      FT_RETURN_IF_ERROR(Check());
      const std::optional<std::uint64_t> wanted = Wanted();
      if (!wanted || received_ == *wanted) return true;
      if (received_ > 0) return Again("the connection ended early", now);
      return Unavailable("{} sent nothing", fetch_->url);
    }
    if (code == CURLE_OK && !MayPass(fetch_->status)) {
      return Invalid("{} answered with status {}", fetch_->url, fetch_->status);
    }
    if (code == CURLE_OK) return Again(fmt::format("status {}", fetch_->status), now);
    if (MayPass(code)) return Again(curl_easy_strerror(code), now);
    return Invalid("{}: {}", fetch_->url, curl_easy_strerror(code));
  }

 private:
  static bool IsGood(int status) { return status == kOk || status == kPartialContent; }

  static std::size_t Take(char* bytes, std::size_t size, std::size_t count, void* transfer) {
    return static_cast<Transfer*>(transfer)->Receive({bytes, size * count}) ? size * count : 0;
  }

  void Configure() {
    const bool secure = settings_.endpoint.starts_with("https://");
    SetOption(easy(), CURLOPT_URL, fetch_->url.c_str());
    SetOption(easy(), CURLOPT_NOBODY, fetch_->asks_only ? 1L : 0L);
    // Whoever begins with TLS stays with it.
    const char* protocols = secure ? "https" : "http,https";
    SetOption(easy(), CURLOPT_PROTOCOLS_STR, protocols);
    SetOption(easy(), CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    SetOption(easy(), CURLOPT_FOLLOWLOCATION, 1L);
    SetOption(easy(), CURLOPT_MAXREDIRS, kMostRedirects);
    // As many connections as there are fetches: parts that share one are no faster than a whole.
    SetOption(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    SetOption(easy(), CURLOPT_USERAGENT, "foretoken");
    SetOption(easy(), CURLOPT_BUFFERSIZE, kReadBytes);
    SetOption(easy(), CURLOPT_WRITEFUNCTION, &Transfer::Take);
    SetOption(easy(), CURLOPT_WRITEDATA, static_cast<void*>(this));
    SetOption(easy(), CURLOPT_PRIVATE, static_cast<void*>(this));
    if (settings_.token.empty()) return;
    // curl drops this header where a redirection leads to another host, port or protocol.
    headers_.reset(
        curl_slist_append(nullptr, ("Authorization: Bearer " + settings_.token).c_str()));
    FT_CHECK(headers_ != nullptr);
    SetOption(easy(), CURLOPT_HTTPHEADER, headers_.get());
  }

  void NoteAnswer() {
    long status = 0;
    curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
    fetch_->status = static_cast<int>(status);
    fetch_->error_code = HeaderOf(easy(), "X-Error-Code");
    fetch_->error_message = HeaderOf(easy(), "X-Error-Message");
  }

  // Whether the server has told what the body is, whatever a server says to which it redirects.
  bool NoteContent() {
    long redirections = 0;
    curl_easy_getinfo(easy(), CURLINFO_REDIRECT_COUNT, &redirections);
    for (int answer = 0; answer <= redirections; ++answer) {
      const std::string etag = HeaderOf(easy(), "X-Linked-ETag", answer);
      if (!etag.empty() && NoteContent(etag, HeaderOf(easy(), "X-Linked-Size", answer)))
        return true;
    }
    return IsGood(fetch_->status) &&
           NoteContent(HeaderOf(easy(), "ETag"), HeaderOf(easy(), "Content-Length"));
  }
  bool NoteContent(const std::string& etag, const std::string& size) {
    std::uint64_t bytes = 0;
    if (etag.empty() || !ParseNumber(size, &bytes)) return false;
    fetch_->etag = Unquoted(etag);
    fetch_->told_size = bytes;
    return true;
  }

  // How many bytes are to come, where that is known.
  std::optional<std::uint64_t> Wanted() const {
    if (range_) return range_->end - range_->begin;
    return fetch_->size;
  }

  Error WrongSize(std::uint64_t said) const {
    return Invalid("{} says that it has {} bytes, but the listing says {}", fetch_->url, said,
                   *fetch_->size);
  }

  // Whether the answer's headers are those of what was asked for.
  Status Check() {
    if (checked_) return {};
    checked_ = true;
    if (range_ && fetch_->status == kOk) {
      fetch_->ignores_ranges = true;
      return Unavailable("{} is sent whole only", fetch_->url);
    }
    if (fetch_->status == kPartialContent) {
      const std::string header = HeaderOf(easy(), "Content-Range");
      const std::optional<ContentRange> sent = ParseContentRange(header);
      if (!range_ || !sent || sent->first != range_->begin || sent->last >= range_->end) {
        return Invalid("{} sent another part than was asked for ('{}')", fetch_->url, header);
      }
      if (fetch_->size && sent->size && *sent->size != *fetch_->size) return WrongSize(*sent->size);
      return {};
    }
    curl_off_t length = -1;
    curl_easy_getinfo(easy(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    const auto said = static_cast<std::uint64_t>(length);
    if (length >= 0 && fetch_->size && said != *fetch_->size) return WrongSize(said);
    return {};
  }

  // False: ends the try.
  bool Receive(std::string_view bytes) {
    long status = 0;
    curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
    fetch_->status = static_cast<int>(status);
    if (!IsGood(fetch_->status)) {  // The page of an error; nobody needs all of a long one.
      constexpr std::uint64_t kMostOfError = 1 << 20;
      received_ += bytes.size();
      return received_ <= kMostOfError;
    }
    failure_ = Check();
    if (!failure_.ok()) return false;
    const std::optional<std::uint64_t> wanted = Wanted();
    if (wanted && received_ + bytes.size() > *wanted) {
      failure_ = Invalid("{} sent more bytes than it has", fetch_->url);
      return false;
    }
    received_ += bytes.size();
    moved_at_ = Clock::now();
    wait_ = settings_.first_wait;
    failures_ = 0;
    failure_ = fetch_->take(bytes);
    return failure_.ok();
  }

  Result<bool> Again(std::string_view why, Clock::time_point now) {
    if (++failures_ >= fetch_->tries) {
      return Unavailable("{} failed {} times: {}", fetch_->url, failures_, why);
    }
    curl_off_t asked = 0;
    curl_easy_getinfo(easy(), CURLINFO_RETRY_AFTER, &asked);
    const auto wanted =
        std::min<std::chrono::milliseconds>(std::chrono::seconds(asked), kLongestWait);
    start_at_ = now + std::max(wait_, wanted);
    wait_ *= 2;
    return false;
  }

  Fetch* fetch_;
  const HubSettings& settings_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_;
  std::optional<ByteRange> range_;
  std::uint64_t received_ = 0;
  bool checked_ = false;
  Status failure_;  // What ended the try on this side.
  int failures_ = 0;
  Clock::time_point start_at_;
  Clock::time_point moved_at_;
  std::chrono::milliseconds wait_;
};

// The fetches that are under way, and those that wait to be.
class Transfers {
 public:
  Transfers() : multi_(curl_multi_init(), curl_multi_cleanup) { FT_CHECK(multi_ != nullptr); }
  ~Transfers() {
    for (const auto& transfer : active_) curl_multi_remove_handle(multi_.get(), transfer->easy());
  }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  bool done() const { return active_.empty() && waiting_.empty(); }
  std::size_t under_way() const { return active_.size() + waiting_.size(); }
  void Add(std::unique_ptr<Transfer> transfer) { waiting_.push_back(std::move(transfer)); }

  Status StartReady(Clock::time_point now) {
    for (auto& transfer : waiting_) {
      if (transfer->start_at() > now) continue;
      FT_RETURN_IF_ERROR(transfer->Begin(now));
      FT_CHECK(curl_multi_add_handle(multi_.get(), transfer->easy()) == CURLM_OK);
      active_.push_back(std::move(transfer));
    }
    std::erase(waiting_, nullptr);
    return {};
  }

  // Lets bytes come, for a moment at most.
  Status Run() {
    constexpr int kMomentMs = 50;
    int running = 0;
    FT_CHECK(curl_multi_perform(multi_.get(), &running) == CURLM_OK);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      FT_RETURN_IF_ERROR(End(message->easy_handle, message->data.result));
    }
    const auto still = std::ranges::find_if(
        active_, [now = Clock::now()](const auto& t) { return t->StandsStill(now); });
    if (still != active_.end()) return End((*still)->easy(), CURLE_OPERATION_TIMEDOUT);
    FT_CHECK(curl_multi_poll(multi_.get(), nullptr, 0, kMomentMs, nullptr) == CURLM_OK);
    return {};
  }

 private:
  Status End(CURL* easy, CURLcode code) {
    curl_multi_remove_handle(multi_.get(), easy);
    const auto at = std::ranges::find(active_, easy, [](const auto& t) { return t->easy(); });
    FT_CHECK(at != active_.end());
    std::unique_ptr<Transfer> transfer = std::move(*at);
    active_.erase(at);
    FT_ASSIGN_OR_RETURN(const bool done, transfer->End(code, Clock::now()));
    if (!done) waiting_.push_back(std::move(transfer));
    return {};
  }

  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_;
  std::vector<std::unique_ptr<Transfer>> active_;
  std::vector<std::unique_ptr<Transfer>> waiting_;
};

}  // namespace

// Reference-counted and, in this version of curl, safe in any thread.
HttpClient::HttpClient(const HubSettings& settings, const std::function<bool()>& cancelled)
    : settings_(settings), cancelled_(cancelled) {
  FT_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

HttpClient::~HttpClient() { curl_global_cleanup(); }

Status HttpClient::FetchAll(std::span<Fetch> fetches) {
  Transfers transfers;
  const std::size_t most = settings_.connections;
  std::size_t next = 0;
  while (next < fetches.size() || !transfers.done()) {
    if (cancelled_()) return Error{ErrorCode::kCancelled, "interrupted"};
    while (next < fetches.size() && transfers.under_way() < most) {
      transfers.Add(std::make_unique<Transfer>(&fetches[next++], settings_, Clock::now()));
    }
    FT_RETURN_IF_ERROR(transfers.StartReady(Clock::now()));
    FT_RETURN_IF_ERROR(transfers.Run());
  }
  return {};
}

std::string EscapeUrl(std::string_view path, bool slashes) {
  std::string escaped;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool ascii_word = byte < 128 && std::isalnum(byte) != 0;
    const bool stays = ascii_word || std::string_view("-._~").find(c) != std::string_view::npos ||
                       (slashes && c == '/');
    escaped += stays ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return escaped;
}

}  // namespace foretoken
