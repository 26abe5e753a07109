#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "apps/foretoken/server/http/http_exchange.h"
#include "apps/foretoken/server/http/http_message.h"
#include "apps/foretoken/server/http/http_stream.h"

namespace foretoken::server {

class HttpConnection;

/// What makes an HTTP server a certain one.
struct HttpApp {
  /// Looks at a request's head before its body is read: the answer that refuses it, if any.
  /// May note the head's `client`.
  std::function<std::optional<HttpReply>(HttpHead* head)> screen;
  std::function<void(HttpRequest request, HttpExchange exchange)> handle;
  /// The answer to what the server itself refuses.
  std::function<HttpReply(int status, const std::string& sentence)> refuse;
  /// Adds what every answer carries; `head` is null where no request was understood.
  std::function<void(const HttpHead* head, HttpReply* reply)> complete;
  /// Told of every request whose head was understood, once it is answered or its client gone.
  std::function<void(const HttpAccess& access)> log;
};

/// What the connections of one server share. The server's thread only, but for the atomic counts.
struct HttpShared {
  HttpLimits limits;
  HttpApp app;
  std::thread::id thread;  ///< The server's, while it runs.
  std::unordered_set<HttpConnection*> open;
  std::atomic<std::size_t> bodies_bytes = 0;
  bool ending = false;  ///< No connection is kept alive any more.
  std::uint64_t requests = 0;
  std::uint64_t first_id = 0;  ///< What made ids count from.
  std::atomic<int> answering = 0;
};

/// Has a body count among all bodies for as long as anybody keeps it: the connection that reads it
/// and, after it has gone, whoever works on the request.
class BodyCount {
 public:
  /// `all` outlives it.
  explicit BodyCount(std::atomic<std::size_t>* all) : all_(all) {}
  ~BodyCount() { *all_ -= bytes_; }
  BodyCount(const BodyCount&) = delete;
  BodyCount& operator=(const BodyCount&) = delete;

  /// Counts it as `bytes`, in place of what it was before. The server's thread.
  void Set(std::size_t bytes) {
    *all_ += bytes - bytes_;
    bytes_ = bytes;
  }

 private:
  std::atomic<std::size_t>* const all_;
  std::size_t bytes_ = 0;
};

/// One connection, for as many requests as come through it, one after the other. It lives and dies
/// on the server's thread: only callbacks of its own stream and timer keep it.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpStream::Socket socket, TlsContext* tls, HttpShared* shared);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void Start();
  /// Closes it where it waits for a further request; else it ends with its next answer.
  void EndKeepAlive();
  void Close();

 private:
  friend class HttpExchange;

  using Clock = std::chrono::steady_clock;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  enum class State {
    kIdle,       // Nothing of the next request has come.
    kHead,       // Some of its head has.
    kBody,       // Its head was admitted.
    kAnswering,  // It is whole, or refused; its answer is not.
    kLingering,  // All is said, and what still comes is thrown away.
    kClosed,
  };

  void Read();
  void OnRead(boost::system::error_code error, std::size_t bytes);
  void Advance();
  void ParseHead();
  void AdmitHead();
  void ParseBody();
  void Handle();
  void Answering();
  void Refuse(int status, const std::string& sentence);
  void RefuseBody();
  bool HoldBody(std::size_t bytes);

  // By its exchange.
  void Answer(HttpReply reply);
  void BeginParts(HttpReply head);
  void AnswerPart(std::string part, std::function<void()> taken);
  void EndParts();

  void BeginAnswer(HttpReply head, std::optional<std::size_t> length);
  void Append(std::string_view part);
  void Flush();
  void OnWritten(boost::system::error_code error, std::size_t bytes);
  void EndAnswer();
  void Log(int status);
  void NextRequest();
  void Linger();
  void Leave();

  void SetDeadline(double seconds, void (HttpConnection::*missed)());
  void MissedHead();
  void MissedRequest();

  HttpStream stream_;
  HttpShared* const shared_;
  boost::asio::steady_timer timer_;
  std::uint64_t deadline_ = 0;  // Number of the deadline that counts.
  State state_ = State::kIdle;

  std::vector<char> arriving_;  // What is being read goes here first: in_ may change meanwhile.
  boost::beast::flat_buffer in_;
  bool reading_ = false;
  bool ended_ = false;  // The client will send no more.
  std::size_t lingered_bytes_ = 0;
  std::optional<Parser> parser_;
  HttpHead head_;
  std::shared_ptr<BodyCount> body_count_;

  std::uint64_t requests_ = 0;            // Requests that were answered.
  std::optional<HttpExchange> exchange_;  // The exchange of the request that is read or answered.
  Clock::time_point began_;               // When its head was whole.
  int status_ = 0;
  std::string note_;
  bool keep_alive_ = true;
  bool chunked_ = false;
  bool bodiless_ = false;  // HEAD: the answer's head alone.
  bool answered_ = false;  // All of the answer is in out_ or sent.
  bool writing_ = false;
  std::string out_;
  std::size_t sent_ = 0;
  std::string coming_;  // What was appended while out_ is being sent.
  std::string last_;    // The body of a whole answer, behind both: long ones are not copied.
  std::function<void()> taken_;
  std::function<void()> gone_;
};

}  // namespace foretoken::server
