#pragma once

#include <fmt/core.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/foretoken/server/http/http_server.h"
#include "base/check.h"

namespace foretoken {

/// A server on this machine that answers as a test says.
class FakeServer {
 public:
  using Handle = std::function<void(server::HttpRequest, server::HttpExchange)>;

  /// `handle` is called on the server's thread and must not block it.
  explicit FakeServer(Handle handle) {
    server::HttpApp app;
    app.screen = [](server::HttpHead*) { return std::nullopt; };
    app.handle = std::move(handle);
    app.refuse = [](int status, const std::string& sentence) {
      return server::HttpReply{.status = status, .body = sentence};
    };
    app.complete = [](const server::HttpHead*, server::HttpReply*) {};
    app.log = [](const server::HttpAccess&) {};
    auto server = server::HttpServer::Start({.port = 0}, std::move(app));
    FT_CHECK(server.ok(), "{}", server.error().message);
    server_ = std::move(*server);
  }

  std::string url() const { return fmt::format("127.0.0.1:{}", server_->port()); }

 private:
  std::unique_ptr<server::HttpServer> server_;
};

}  // namespace foretoken
