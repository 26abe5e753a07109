#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/access/api_keys.h"
#include "server/doors/openai.h"
#include "server/http/http_server.h"
#include "server/observe/access_log.h"
#include "server/queries.h"
#include "server/service.h"
#include "server/work_pool.h"

namespace foretoken::server {

struct ServerOptions {
  HttpOptions http;
  ApiKeys keys;                          ///< None: nobody is asked for one.
  std::string cors;                      ///< Origin whose pages may call; empty: the server's own.
  std::vector<std::string> allow_hosts;  ///< Names it is called by besides its own.
  double shutdown_seconds = 30;
  std::string version;
  std::string log_file;  ///< Empty: none.
  bool verbose = false;  ///< The log's lines on standard error.
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

  int port() const { return http_->port(); }
  /// Waits until the model is loaded, or says why it could not be.
  Status AwaitLoaded() { return service_.engine().AwaitLoaded(); }
  const ServedModel& model() const { return service_.model(); }
  /// What was decoded so far.
  ServerTotals totals() const { return service_.engine().stats().Published(); }

  /// Refuses new requests with 503, lets running ones end for `shutdown_seconds`, ends the rest
  /// with an error reply, and stops listening.
  void Shutdown();

 private:
  /// Where a request goes by its path.
  struct Route {
    std::string method;
    bool open = false;   ///< Whoever comes: without an API key.
    bool quick = false;  ///< Answered on the HTTP server's thread; else on the work pool.
    const Door* door = &ChatDoor();  ///< Whose form errors have.
    std::function<void(const HttpRequest&, const HttpExchange&)> answer;
  };
  using Handler = HttpReply (Server::*)(const HttpRequest&);

  Server(ServerOptions options, ModelLoader load);

  void AddRoutes();
  void Get(const std::string& path, Handler handler, bool open = false);
  void Post(const std::string& path, Handler handler);
  void AddDoor(const Door& door);
  void AddQuery(const std::string& method, const std::string& path, const Door& door, Query query);
  void AddPage();
  const Route* FindRoute(const std::string& path) const;

  std::optional<HttpReply> Screen(HttpHead* head) const;
  std::optional<HttpReply> Unauthorized(const Route& route, HttpHead* head) const;
  Caller CallerOf(const HttpHead& head) const;
  bool KnowsHost(const HttpHead& head) const;
  HttpReply Preflight(const HttpHead& head) const;
  void Handle(HttpRequest request, const HttpExchange& exchange);
  void Complete(const HttpHead* head, HttpReply* reply) const;

  OrderedJson ModelJson() const;
  HttpReply Models(const HttpRequest& request);
  HttpReply Model(const HttpRequest& request);
  HttpReply Health(const HttpRequest& request);
  HttpReply Metrics(const HttpRequest& request);
  HttpReply Props(const HttpRequest& request);
  HttpReply Stats(const HttpRequest& request);
  HttpReply Tokenize(const HttpRequest& request);
  HttpReply Detokenize(const HttpRequest& request);

  const ServerOptions options_;
  std::map<std::string, Route> routes_;  // By path; one that ends with '/' is for all below it.

  AccessLog log_;

  // In this order: the engine's and the pool's threads answer through the HTTP server.
  std::unique_ptr<HttpServer> http_;
  Service service_;
  std::unique_ptr<WorkPool> pool_;
  bool stopped_ = false;
};

}  // namespace foretoken::server
