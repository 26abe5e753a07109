#include "apps/foretoken/server/http/http_exchange.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "apps/foretoken/server/http/http_connection.h"

namespace foretoken::server {

void HttpExchange::Post(std::function<void()> work) const {
  boost::asio::post(executor(), std::move(work));
}

void HttpExchange::Reply(HttpReply reply) const {
  boost::asio::dispatch(executor(), [self = *this, reply = std::move(reply)]() mutable {
    if (HttpConnection* connection = self.connection()) connection->Answer(std::move(reply));
  });
}

void HttpExchange::Begin(HttpReply head) const {
  if (HttpConnection* connection = this->connection()) connection->BeginParts(std::move(head));
}

void HttpExchange::Write(std::string part, std::function<void()> taken) const {
  if (HttpConnection* connection = this->connection()) {
    connection->AnswerPart(std::move(part), std::move(taken));
  }
}

void HttpExchange::End() const {
  if (HttpConnection* connection = this->connection()) connection->EndParts();
}

void HttpExchange::Note(std::string note) const {
  if (HttpConnection* connection = this->connection()) connection->note_ = std::move(note);
}

void HttpExchange::OnGone(std::function<void()> gone) const {
  HttpConnection* connection = this->connection();
  if (connection == nullptr) return gone();
  connection->gone_ = std::move(gone);
}

}  // namespace foretoken::server
