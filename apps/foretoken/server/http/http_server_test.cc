#include "apps/foretoken/server/http/http_server.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace foretoken::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr char kRequest[] = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na";

// A server of one connection at a time, which hands its exchanges to the test.
class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    HttpApp app;
    app.screen = [](HttpHead*) { return std::nullopt; };
    app.handle = [this](HttpRequest request, HttpExchange exchange) {
      exchange.OnGone([this] { gone_.set_value(); });
      asked_.set_value({std::move(request), std::move(exchange)});
    };
    app.refuse = [](int status, const std::string& sentence) {
      return HttpReply{.status = status, .body = sentence};
    };
    app.complete = [](const HttpHead*, HttpReply*) {};
    app.log = [](const HttpAccess&) {};
    HttpOptions options;
    options.port = 0;
    options.limits.connections = 1;
    options.limits.bodies_bytes = 0;
    auto server = HttpServer::Start(options, std::move(app));
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(*server);
  }

  tcp::socket Connect() {
    tcp::socket socket(io_);
    socket.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
    return socket;
  }
  // The status line of the answer to a request on a new connection.
  std::string Ask() {
    tcp::socket socket = Connect();
    asio::write(socket, asio::buffer(kRequest, sizeof(kRequest) - 1));
    std::string line(12, ' ');
    boost::system::error_code ignored;
    asio::read(socket, asio::buffer(line), ignored);
    return line;
  }

  struct Asked {
    HttpRequest request;
    HttpExchange exchange;
  };
  asio::io_context io_;
  std::promise<Asked> asked_;
  std::promise<void> gone_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ExchangesKeepNoConnection) {
  std::optional<tcp::socket> client = Connect();
  asio::write(*client, asio::buffer(kRequest, sizeof(kRequest) - 1));
  const Asked asked = asked_.get_future().get();
  EXPECT_FALSE(asked.exchange.over());
  client.reset();
  gone_.get_future().wait();
  EXPECT_TRUE(asked.exchange.over());
  asked.exchange.Reply({.body = "nobody reads this"});
  // The one connection that there may be is free, whoever still has the exchange.
  asked_ = {};
  gone_ = {};
  auto next = std::async(std::launch::async, [this] { return Ask(); });
  const Asked second = asked_.get_future().get();
  second.exchange.Reply({.body = "yes"});
  EXPECT_EQ(next.get(), "HTTP/1.1 200");
}

TEST_F(HttpServerTest, ExchangesMayOutliveTheServersThread) {
  tcp::socket client = Connect();
  asio::write(client, asio::buffer(kRequest, sizeof(kRequest) - 1));
  const Asked asked = asked_.get_future().get();
  server_->Stop();
  EXPECT_TRUE(asked.exchange.over());
  asked.exchange.Reply({.body = "nobody sends this"});
  std::string rest(1, ' ');
  boost::system::error_code error;
  asio::read(client, asio::buffer(rest), error);
  EXPECT_TRUE(error) << "the connection lives on";
}

}  // namespace
}  // namespace foretoken::server
