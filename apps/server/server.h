#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "server/http_server.h"
#include "server/service.h"

namespace foretoken::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;      ///< 0: any free one.
  std::string api_key;  ///< Empty: none is asked for.
  std::string cors;     ///< Origin that pages may call from; empty: only the server's own.
  double shutdown_seconds = 30;
  std::string version;
  ConnectionLimits connections;
  ServiceOptions service;
};

/// An OpenAI-compatible HTTP server over one engine (docs/api.md). Answers from the start, with 503
/// until the model is loaded.
class Server {
 public:
  /// Binds and begins to listen and to load. An error where the address cannot be had.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, ModelLoader load);
  /// Shuts down, if nobody has.
  ~Server();

  int port() const { return port_; }
  /// Waits until the model is loaded, or says why it could not be.
  Status AwaitLoaded() { return service_.engine().AwaitLoaded(); }
  const ServedModel& model() const { return service_.model(); }

  /// Refuses new requests with 503, lets running ones end for `shutdown_seconds`, ends the rest
  /// with an error reply, and stops listening.
  void Shutdown();

 private:
  using Handler = void (Server::*)(const httplib::Request&, httplib::Response*);

  Server(ServerOptions options, ModelLoader load);

  void AddRoutes();
  void Get(const std::string& path, Handler handler, bool open = false);
  void Post(const std::string& path, Handler handler);
  void AddPage();
  bool Authorised(const httplib::Request& request) const;
  void ReplyUnauthorised(httplib::Response* response) const;
  void ReplyUnhandled(const httplib::Request& request, httplib::Response* response) const;

  template <ApiKind kind>
  void Generate(const httplib::Request& request, httplib::Response* response);
  void Models(const httplib::Request& request, httplib::Response* response);
  void Health(const httplib::Request& request, httplib::Response* response);
  void Metrics(const httplib::Request& request, httplib::Response* response);
  void Props(const httplib::Request& request, httplib::Response* response);
  void Stats(const httplib::Request& request, httplib::Response* response);
  void Tokenize(const httplib::Request& request, httplib::Response* response);
  void Detokenize(const httplib::Request& request, httplib::Response* response);

  const ServerOptions options_;
  const std::string api_key_digest_;
  std::map<std::string, std::string> methods_;  // By path: what it is answered for.
  std::atomic<int> in_flight_ = 0;
  Service service_;
  HttpServer http_;
  int port_ = 0;
  std::thread listener_;
};

}  // namespace foretoken::server
