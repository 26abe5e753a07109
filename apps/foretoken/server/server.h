#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/foretoken/server/access/api_keys.h"
#include "apps/foretoken/server/access/client_places.h"
#include "apps/foretoken/server/doors/doors.h"
#include "apps/foretoken/server/http/http_server.h"
#include "apps/foretoken/server/models/model_cards.h"
#include "apps/foretoken/server/models/model_registry.h"
#include "apps/foretoken/server/observe/access_log.h"
#include "apps/foretoken/server/pulls/puller.h"
#include "apps/foretoken/server/queries.h"
#include "apps/foretoken/server/work_pool.h"
#include "base/result.h"

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
  RegistryLimits models;
  /// Fetches a model that a client names as on a hub; null: clients may not have any fetched.
  using Fetch = std::function<Result<ModelSpec>(const std::string& name, const PullHooks& hooks)>;
  Fetch fetch = nullptr;
  std::uint64_t pull_bytes = 0;  ///< The most that such a model may have.
};

/// An OpenAI-compatible HTTP server over one or more models (docs/look_up/api.md). Answers from the
/// start.
class Server {
 public:
  /// Binds and begins to listen, and to load where there is one model only. An error where the
  /// address cannot be had.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options,
                                               std::vector<ModelSpec> models);
  /// Shuts down, if nobody has.
  ~Server();

  int port() const { return http_->port(); }
  ModelRegistry& models() { return models_; }

  /// From now on these keys are asked for in place of those before, where any were: a server that
  /// asks for none cannot begin to. What was asked with another key goes on.
  void ReplaceKeys(ApiKeys keys);

  /// Refuses new requests with 503, lets running ones end for `shutdown_seconds`, ends the rest
  /// with an error reply, and stops listening.
  void Shutdown();

 private:
  // With its client's place among those that wait.
  using HeldRequest = std::shared_ptr<const HttpRequest>;

  /// Where a request goes by its path.
  struct Route {
    std::string method;  ///< Or several: "GET, DELETE".
    bool open = false;   ///< Whoever comes: without an API key.
    bool quick = false;  ///< Answered on the HTTP server's thread; else on the work pool.
    bool loads = false;  ///< It may load a model, and have another one unloaded for it.
    const Door* door = &ChatDoor();  ///< Whose form errors have.
    std::function<void(const HeldRequest&, const HttpExchange&)> answer;
  };
  using Handler = HttpReply (Server::*)(const HttpRequest&);

  Server(ServerOptions options, std::vector<ModelSpec> models,
         std::shared_ptr<ResponseStore> responses);
  static void FitToCallers(const ServerOptions& options,
                           const std::shared_ptr<ResponseStore>& responses, ModelSpec* model);

  void AddRoutes();
  void Get(const std::string& path, Handler handler, bool open = false);
  void AddDoor(const Door& door, std::string_view path);
  void AddDoor(const Door& door) { AddDoor(door, door.path); }
  void AddOllamaDoor(const Door& door);
  void AddOllamaQueries();
  void AnswerPull(const HttpRequest& request, const HttpExchange& exchange);
  Status FetchAndServe(const std::string& name, const PullHooks& hooks);
  void AddModelRoutes();
  void AddSlotActions();
  void AddModelSwitch(const std::string& path, std::function<void(ModelRegistry::Index)> change);
  void AddRefusal(const std::string& method, const std::string& path, const Door& door,
                  ApiError error);
  void AddQuery(const std::string& method, const std::string& path, const Door& door, Query query);
  void AddPage();
  const Route* FindRoute(const std::string& path) const;

  std::optional<HttpReply> Screen(HttpHead* head) const;
  std::optional<HttpReply> Unauthorized(const Route& route, HttpHead* head) const;
  std::shared_ptr<const ApiKeys> Keys() const;
  Caller CallerOf(const HttpHead& head) const;
  bool KnowsHost(const HttpHead& head) const;
  HttpReply Preflight(const HttpHead& head) const;
  void Handle(HttpRequest request, const HttpExchange& exchange);
  void Enqueue(const Door& door, const HeldRequest& request, const HttpExchange& exchange,
               std::function<void()> work);
  std::variant<ModelRegistry::Index, ApiError> ModelOf(const Door& door,
                                                       const std::string& body) const;
  void WithModel(const std::variant<ModelRegistry::Index, ApiError>& model, const Door& door,
                 const HeldRequest& request, const HttpExchange& exchange,
                 std::function<void(const ModelRegistry::Lease&)> work);
  void Complete(const HttpHead* head, HttpReply* reply) const;

  std::optional<ApiError> Unready() const;
  HttpReply Models(const HttpRequest& request);
  HttpReply Model(const HttpRequest& request);
  HttpReply Health(const HttpRequest& request);
  HttpReply Metrics(const HttpRequest& request);
  HttpReply Stats(const HttpRequest& request);
  HttpReply Response(const HttpRequest& request);
  HttpReply Version(const HttpRequest& request);

  const ServerOptions options_;
  std::map<std::string, Route> routes_;  // By path; one that ends with '/' is for all below it.

  mutable std::mutex keys_mutex_;
  std::shared_ptr<const ApiKeys> keys_;  // Null: nobody is asked for one, ever.

  const std::int64_t began_;  // In seconds since 1970.

  AccessLog log_;
  const std::shared_ptr<ResponseStore> responses_;

  // Requests that wait to be read or for their model, client by client.
  const std::shared_ptr<ClientPlaces> waiting_ = std::make_shared<ClientPlaces>();

  // In this order: the engines' and the pool's threads answer through the HTTP server, and the
  // pool's use models.
  std::unique_ptr<HttpServer> http_;
  ModelRegistry models_;
  ModelCards cards_{&models_};
  Puller puller_;
  std::unique_ptr<WorkPool> pool_;
  bool stopped_ = false;
};

}  // namespace foretoken::server
