#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <thread>

#include "apps/foretoken/server/http/http_connection.h"
#include "apps/foretoken/server/http/http_message.h"
#include "base/result.h"

namespace foretoken::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;              ///< 0: any free one.
  std::string tls_certificate;  ///< PEM files, both or neither; empty: no TLS.
  std::string tls_key;
  HttpLimits limits;
};

/// An HTTP/1.1 server whose connections all live on one thread, which sleeps while nothing comes:
/// a connection costs no thread of its own, and every limit holds as bytes arrive.
class HttpServer {
 public:
  /// Binds, listens, and answers by `app`, whose functions are called on the server's thread and
  /// must not block it. An error where the address cannot be had.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpOptions& options, HttpApp app);
  ~HttpServer();

  /// Stops the server's thread; connections close with the server.
  void Stop();

  int port() const { return port_; }
  /// Requests that are being answered.
  int answering() const { return shared_.answering; }
  /// Connections close after the reply under way; new ones are still answered, once.
  void EndKeepAlive();

 private:
  class Listener;

  HttpServer(const HttpOptions& options, HttpApp app);
  void Run();

  HttpShared shared_;
  std::unique_ptr<TlsContext> tls_;
  boost::asio::io_context io_{1};  // With it go its connections, which use the two above.
  std::unique_ptr<Listener> listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace foretoken::server
