#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apps/foretoken/server/http/http_message.h"

namespace foretoken::server {

class HttpConnection;

/// One request that waits for its answer: a handle that handlers keep and copy, on any thread and
/// for as long as they like. It owns nothing of the connection, which lives and dies on the
/// server's thread: what is said after the answer has ended or the client has gone is ignored.
class HttpExchange {
 public:
  /// Made by `connection`, which calls Finish when the request is over.
  HttpExchange(boost::asio::any_io_executor executor, HttpConnection* connection)
      : ticket_(new Ticket{std::move(executor), {connection}}) {}

  // Any thread.

  /// Whether the answer has ended or the client has gone, so that nobody reads what is still said.
  bool over() const { return ticket_->connection.load(std::memory_order_relaxed) == nullptr; }
  /// The whole answer.
  void Reply(HttpReply reply) const;
  /// Runs `work` on the server's thread.
  void Post(std::function<void()> work) const;
  const boost::asio::any_io_executor& executor() const { return ticket_->executor; }

  // The server's thread only.

  /// An answer that comes in parts; `head` has no body.
  void Begin(HttpReply head) const;
  /// One part; `taken` is called when the client has been sent it.
  void Write(std::string part, std::function<void()> taken) const;
  void End() const;
  /// What the log is to say of it, besides what HTTP knows.
  void Note(std::string note) const;
  /// Called at most once: when the client leaves before the answer has ended.
  void OnGone(std::function<void()> gone) const;
  /// The connection's own: from here on the exchange is over.
  void Finish() const { ticket_->connection.store(nullptr, std::memory_order_relaxed); }

 private:
  struct Ticket {
    const boost::asio::any_io_executor executor;
    /// Null when the request is over. Written and followed on the server's thread only; the others
    /// compare it with null.
    std::atomic<HttpConnection*> connection;
  };

  // The server's thread only: null when it is over.
  HttpConnection* connection() const { return ticket_->connection.load(std::memory_order_relaxed); }

  std::shared_ptr<Ticket> ticket_;
};

}  // namespace foretoken::server
