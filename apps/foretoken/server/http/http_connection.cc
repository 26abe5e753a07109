#include "apps/foretoken/server/http/http_connection.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <cctype>
#include <ctime>
#include <utility>

#include "apps/foretoken/server/http/request_rules.h"
#include "base/check.h"

namespace foretoken::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kSmallRead = 4 << 10;
constexpr std::size_t kBodyRead = 64 << 10;
constexpr std::size_t kSmallBody = 64 << 10;
// What a refused client may still send before it is cut off: enough that it reads the answer.
constexpr std::size_t kLingerBytes = 8 << 20;
constexpr double kLingerSeconds = 2;
constexpr int kContinue = 100;
constexpr int kClientLeft = 499;  // As nginx has it.

// Whether a client's own name for its request is fit for a header and a log.
bool IsRequestId(std::string_view id) {
  constexpr std::size_t kLongest = 64;
  return !id.empty() && id.size() <= kLongest &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

std::string DateField() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

}  // namespace

HttpConnection::HttpConnection(HttpStream::Socket socket, TlsContext* tls, HttpShared* shared)
    : stream_(std::move(socket), tls),
      shared_(shared),
      timer_(stream_.socket().get_executor()),
      in_(shared->limits.head_bytes + kBodyRead) {
  shared_->open.insert(this);
}

HttpConnection::~HttpConnection() {
  FT_CHECK(shared_->thread == std::thread::id() || shared_->thread == std::this_thread::get_id(),
           "a connection dies on the server's thread");
  if (exchange_.has_value()) exchange_->Finish();
  if (state_ == State::kAnswering) --shared_->answering;
  shared_->open.erase(this);
}

void HttpConnection::Start() {
  error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  head_.peer = stream_.socket().remote_endpoint(ignored).address().to_string();
  if (!stream_.encrypted()) return NextRequest();
  SetDeadline(shared_->limits.head_seconds, &HttpConnection::Close);
  stream_.Handshake([self = shared_from_this()](error_code error) {
    if (error) return self->Close();
    self->NextRequest();
  });
}

void HttpConnection::EndKeepAlive() {
  // A new one may have its first request on the way: that is still answered.
  if (state_ == State::kIdle && requests_ > 0) return Close();
  keep_alive_ = false;
}

// Reading goes on while an answer is made, so that a client that leaves is noticed; what it sends
// meanwhile waits in in_, up to its bound.
void HttpConnection::Read() {
  if (reading_ || ended_ || state_ == State::kClosed) return;
  const std::size_t want = state_ == State::kBody ? kBodyRead : kSmallRead;
  const std::size_t room = std::min(want, in_.max_size() - in_.size());
  if (room == 0) return;
  reading_ = true;
  if (arriving_.size() != want) arriving_ = std::vector<char>(want);
  stream_.ReadSome(asio::buffer(arriving_.data(), room),
                   [self = shared_from_this()](error_code error, std::size_t bytes) {
                     self->reading_ = false;
                     self->OnRead(error, bytes);
                   });
}

void HttpConnection::OnRead(error_code error, std::size_t bytes) {
  if (state_ == State::kClosed) return;
  if (error) {
    ended_ = true;
    if (state_ == State::kAnswering && answered_) {
      keep_alive_ = false;  // It has asked and now listens only.
    } else if (state_ == State::kBody || state_ == State::kHead) {
      Refuse(400, "the connection ended before the request was whole");
    } else {
      Leave();
    }
    return;
  }
  in_.commit(asio::buffer_copy(in_.prepare(bytes), asio::buffer(arriving_.data(), bytes)));
  if (state_ == State::kLingering) {
    lingered_bytes_ += in_.size();
    in_.consume(in_.size());
    if (lingered_bytes_ > kLingerBytes) return Close();
  }
  Advance();
  Read();
}

void HttpConnection::Advance() {
  if (state_ == State::kIdle && in_.size() > 0) {
    state_ = State::kHead;
    SetDeadline(shared_->limits.head_seconds, &HttpConnection::MissedHead);
  }
  if (state_ == State::kHead) ParseHead();
  if (state_ == State::kBody) ParseBody();
}

void HttpConnection::ParseHead() {
  error_code error;
  while (in_.size() > 0 && !parser_->is_header_done()) {
    in_.consume(parser_->put(in_.data(), error));
    if (error == http::error::need_more) {
      if (in_.size() > shared_->limits.head_bytes)
        error = http::error::header_limit;
      else
        return;
    }
    if (error == http::error::header_limit) {
      return Refuse(431, fmt::format("the request line and the header fields are larger than the "
                                     "{} bytes that this server takes",
                                     shared_->limits.head_bytes));
    }
    if (error == http::error::body_limit) return RefuseBody();
    if (error) {
      return Refuse(
          400, "this is not an HTTP request that the server understands (" + error.message() + ")");
    }
  }
  if (parser_->is_header_done()) AdmitHead();
}

// What a head must be like before anything of the body is kept.
void HttpConnection::AdmitHead() {
  const auto& message = parser_->get();
  keep_alive_ = keep_alive_ && message.keep_alive() && !shared_->ending;
  chunked_ = message.version() >= 11;
  bodiless_ = message.method() == http::verb::head;
  const std::string peer = std::move(head_.peer);
  head_ = HeadOf(message);
  head_.peer = peer;
  began_ = Clock::now();
  note_.clear();
  ++shared_->requests;
  const std::string_view id = head_.Field("X-Request-Id");
  head_.id = IsRequestId(id) ? std::string(id)
                             : fmt::format("req-{:016x}", shared_->first_id + shared_->requests);
  if (const auto broken = BrokenRule(head_, message.version())) {
    return Refuse(broken->status, broken->sentence);
  }
  std::optional<HttpReply> refused = shared_->app.screen(&head_);
  const bool has_body = !parser_->is_done();
  if (refused.has_value()) {
    Answering();
    keep_alive_ = keep_alive_ && !has_body;
    return Answer(std::move(*refused));
  }
  state_ = State::kBody;
  body_count_ = std::make_shared<BodyCount>(&shared_->bodies_bytes);
  SetDeadline(shared_->limits.request_seconds, &HttpConnection::MissedRequest);
  if (has_body && head_.Field("Expect") == "100-continue") {
    out_ = fmt::format("HTTP/1.1 {} Continue\r\n\r\n", kContinue);
    Flush();
  }
  parser_->eager(true);
}

void HttpConnection::ParseBody() {
  error_code error;
  while (!parser_->is_done() && in_.size() > 0) {
    in_.consume(parser_->put(in_.data(), error));
    if (!HoldBody(parser_->get().body().size())) {
      return Refuse(503, "the server is taking too many large requests at once; try again later");
    }
    if (error == http::error::need_more) {
      if (in_.size() < kBodyRead) return;
      return Refuse(400, "a chunk of the body begins with a line that is too long");
    }
    if (error == http::error::body_limit) return RefuseBody();
    if (error) return Refuse(400, "the body is not framed as HTTP asks (" + error.message() + ")");
  }
  if (parser_->is_done()) Handle();
}

void HttpConnection::Handle() {
  Answering();
  SetDeadline(0, nullptr);
  if (in_.size() == 0) in_.shrink_to_fit();  // Long heads and bodies do not stay as empty room.
  HttpRequest request{
      .head = head_, .body = std::move(parser_->get().body()), .counted = body_count_};
  parser_->get().body().clear();
  shared_->app.handle(std::move(request), *exchange_);
}

void HttpConnection::Answering() {
  if (state_ != State::kAnswering) ++shared_->answering;
  state_ = State::kAnswering;
}

void HttpConnection::RefuseBody() {
  Refuse(413, fmt::format("the body is larger than the {} bytes that this server takes",
                          shared_->limits.body_bytes));
}

// An answer by the server itself; it says nothing more to who breaks the rules.
void HttpConnection::Refuse(int status, const std::string& sentence) {
  Answering();
  keep_alive_ = false;
  Answer(shared_->app.refuse(status, sentence));
}

// Counts a body that has come to `bytes`; false where there is no room for it. A small one is
// taken whatever others hold, so that who sends large ones does not shut the others out: there are
// no more of these than connections.
bool HttpConnection::HoldBody(std::size_t bytes) {
  body_count_->Set(bytes);
  return bytes <= kSmallBody || shared_->bodies_bytes <= shared_->limits.bodies_bytes;
}

void HttpConnection::Answer(HttpReply reply) {
  if (answered_) return;
  std::string body = std::move(reply.body);
  BeginAnswer(std::move(reply), body.size());
  if (body.size() <= kSmallBody) {
    if (!bodiless_) Append(body);
  } else if (!bodiless_) {
    last_ = std::move(body);
  }
  answered_ = true;
  gone_ = nullptr;
  Flush();
}

void HttpConnection::BeginParts(HttpReply head) {
  BeginAnswer(std::move(head), std::nullopt);
  Flush();
}

void HttpConnection::AnswerPart(std::string part, std::function<void()> taken) {
  if (chunked_) {
    Append(fmt::format("{:x}\r\n", part.size()));
    Append(part);
    Append("\r\n");
  } else {
    Append(part);
  }
  taken_ = std::move(taken);
  Flush();
}

void HttpConnection::EndParts() {
  if (chunked_) Append("0\r\n\r\n");
  answered_ = true;
  gone_ = nullptr;
  Flush();
}

void HttpConnection::BeginAnswer(HttpReply head, std::optional<std::size_t> length) {
  const bool understood = parser_.has_value() && parser_->is_header_done();
  shared_->app.complete(understood ? &head_ : nullptr, &head);
  status_ = head.status;
  const bool streams = !length.has_value();
  if (streams && !chunked_) keep_alive_ = false;  // HTTP/1.0: the end is where it closes.
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status,
      std::string(http::obsolete_reason(static_cast<http::status>(head.status))), DateField());
  if (!head.content_type.empty()) text += "Content-Type: " + head.content_type + "\r\n";
  if (length.has_value() && head.status != 204)
    text += fmt::format("Content-Length: {}\r\n", *length);
  if (streams && chunked_) text += "Transfer-Encoding: chunked\r\n";
  text += keep_alive_ ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  for (const auto& [name, value] : head.fields) text += name + ": " + value + "\r\n";
  text += "\r\n";
  Append(text);
}

void HttpConnection::Append(std::string_view part) { (writing_ ? coming_ : out_) += part; }

void HttpConnection::Flush() {
  if (writing_ || state_ == State::kClosed) return;
  if (sent_ == out_.size()) {
    if (coming_.empty()) coming_.swap(last_);
    out_.swap(coming_);
    coming_.clear();
    sent_ = 0;
  }
  if (out_.empty()) {
    if (state_ == State::kAnswering) SetDeadline(0, nullptr);
    if (auto taken = std::exchange(taken_, nullptr)) taken();
    if (state_ == State::kAnswering && answered_ && !writing_) EndAnswer();
    return;
  }
  writing_ = true;
  if (state_ == State::kAnswering) {
    SetDeadline(shared_->limits.write_seconds, &HttpConnection::Leave);
  }
  stream_.WriteSome(asio::buffer(out_.data() + sent_, out_.size() - sent_),
                    [self = shared_from_this()](error_code error, std::size_t bytes) {
                      self->writing_ = false;
                      self->OnWritten(error, bytes);
                    });
}

void HttpConnection::OnWritten(error_code error, std::size_t bytes) {
  if (state_ == State::kClosed) return;
  if (error) return Leave();
  sent_ += bytes;
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  Flush();
}

void HttpConnection::Log(int status) {
  if (!parser_.has_value() || !parser_->is_header_done()) return;
  const std::chrono::duration<double, std::milli> took = Clock::now() - began_;
  shared_->app.log({.head = head_, .status = status, .milliseconds = took.count(), .note = note_});
}

void HttpConnection::EndAnswer() {
  Log(status_);
  --shared_->answering;
  ++requests_;
  exchange_->Finish();
  out_ = {};
  coming_ = {};
  gone_ = nullptr;
  body_count_.reset();
  if (!keep_alive_ || shared_->ending) return Linger();
  NextRequest();
}

void HttpConnection::NextRequest() {
  state_ = State::kIdle;
  answered_ = false;
  exchange_.emplace(stream_.socket().get_executor(), this);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_->limits.head_bytes));
  parser_->body_limit(shared_->limits.body_bytes);
  SetDeadline(shared_->limits.idle_seconds, &HttpConnection::Close);
  if (in_.size() > 0) {
    // A request that came early. Not from here: a client that sends a thousand would nest them.
    asio::post(stream_.socket().get_executor(), [self = shared_from_this()] {
      self->Advance();
      self->Read();
    });
    return;
  }
  Read();
}

// A connection that is closed with unread input is reset, and the client may never see its answer.
void HttpConnection::Linger() {
  state_ = State::kLingering;
  parser_.reset();
  in_.consume(in_.size());
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  if (ended_) return Close();
  SetDeadline(kLingerSeconds, &HttpConnection::Close);
  Read();
}

void HttpConnection::Close() {
  if (state_ == State::kAnswering) {
    Log(kClientLeft);
    --shared_->answering;
  }
  state_ = State::kClosed;
  if (exchange_.has_value()) exchange_->Finish();
  body_count_.reset();
  taken_ = nullptr;
  gone_ = nullptr;
  timer_.cancel();
  error_code ignored;
  stream_.socket().close(ignored);
}

// The client is gone, or counts as gone.
void HttpConnection::Leave() {
  const auto gone = std::exchange(gone_, nullptr);
  Close();
  if (gone) gone();
}

void HttpConnection::SetDeadline(double seconds, void (HttpConnection::*missed)()) {
  const std::uint64_t deadline = ++deadline_;
  timer_.cancel();
  if (missed == nullptr) return;
  timer_.expires_after(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  timer_.async_wait([self = weak_from_this(), deadline, missed](error_code error) {
    const auto connection = self.lock();
    if (error || connection == nullptr || connection->deadline_ != deadline) return;
    (connection.get()->*missed)();
  });
}

void HttpConnection::MissedHead() {
  Refuse(408, fmt::format("the request's header fields did not arrive within {} seconds",
                          shared_->limits.head_seconds));
}

void HttpConnection::MissedRequest() {
  Refuse(408, fmt::format("the request did not arrive whole within {} seconds",
                          shared_->limits.request_seconds));
}

}  // namespace foretoken::server
