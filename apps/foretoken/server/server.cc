#include "apps/foretoken/server/server.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "apps/foretoken/server/access/foreign_pages.h"
#include "apps/foretoken/server/access/loopback.h"
#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/metrics.h"
#include "apps/foretoken/server/page/page.h"
#include "apps/foretoken/server/replies.h"
#include "base/exhaustion.h"
#include "base/text/text.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

constexpr int kWorkThreads = 4;
constexpr int kMaxWaiting = 1024;  // Requests of one client that wait to be read.

// Whose form an error has at a path where nothing is.
const Door& DoorAt(std::string_view path) {
  if (path.starts_with("/api/")) return OllamaChatDoor();
  return path.starts_with("/v1/messages") ? AnthropicDoor() : ChatDoor();
}

// What the server refuses before it looks at what is asked.
HttpReply Refused(int status, const std::string& sentence, const Door& door = ChatDoor()) {
  ApiError error{.status = status, .message = sentence};
  if (status == 413) error.code = "body_too_large";
  if (status >= 500) error.type = "server_error";
  if (status == 503) error.retry_after = 1;
  return ErrorReply(error, door);
}

RegistryLimits LimitsOf(const ServerOptions& options) {
  RegistryLimits limits = options.models;
  limits.grows = options.fetch != nullptr;
  return limits;
}

// Whether a route that answers `methods` answers this one.
bool Answers(std::string_view methods, std::string_view method) {
  if (method == "HEAD") method = "GET";
  const std::size_t found = methods.find(method);
  return !method.empty() && found != methods.npos && (found == 0 || methods[found - 1] == ' ') &&
         (found + method.size() == methods.size() || methods[found + method.size()] == ',');
}

}  // namespace

Server::Server(ServerOptions options, std::vector<ModelSpec> models,
               std::shared_ptr<ResponseStore> responses)
    : options_(std::move(options)),
      keys_(options_.keys.empty() ? nullptr : std::make_shared<const ApiKeys>(options_.keys)),
      began_(std::time(nullptr)),
      responses_(std::move(responses)),
      models_(std::move(models), LimitsOf(options_)),
      puller_(
          options_.fetch == nullptr
              ? Pull()
              : [this](const std::string& name,
                       const PullHooks& hooks) { return FetchAndServe(name, hooks); },
          options_.pull_bytes) {
  AddRoutes();
}

// Without keys, who calls from this machine is its user.
void Server::FitToCallers(const ServerOptions& options,
                          const std::shared_ptr<ResponseStore>& responses, ModelSpec* model) {
  model->options.clients_are_one = options.keys.empty() && IsLoopback(options.http.host);
  model->options.responses = responses;
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options,
                                              std::vector<ModelSpec> models) {
  // Buffers of requests and replies go back to the system when they are freed, however many there
  // were; the allocator would learn to keep ever larger ones.
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Server> server,
                      OrExhausted([&]() -> Result<std::unique_ptr<Server>> {
                        const auto responses = std::make_shared<ResponseStore>();
                        for (ModelSpec& model : models) FitToCallers(options, responses, &model);
                        return std::unique_ptr<Server>(
                            new Server(std::move(options), std::move(models), responses));
                      }));
  FT_ASSIGN_OR_RETURN(server->log_,
                      AccessLog::Open(server->options_.log_file, server->options_.verbose));
  FT_ASSIGN_OR_RETURN(server->pool_, WorkPool::Start(kWorkThreads));
  Server* const own = server.get();
  const HttpApp app = {
      .screen = [own](HttpHead* head) { return own->Screen(head); },
      .handle = [own](HttpRequest request,
                      HttpExchange exchange) { own->Handle(std::move(request), exchange); },
      .refuse = [](int status, const std::string& sentence) { return Refused(status, sentence); },
      .complete = [own](const HttpHead* head, HttpReply* reply) { own->Complete(head, reply); },
      .log = [own](const HttpAccess& access) { own->log_.Write(access); }};
  FT_ASSIGN_OR_RETURN(server->http_, HttpServer::Start(own->options_.http, app));
  if (own->models_.began_with_one()) own->models_.Preload(0);
  return server;
}

Server::~Server() {
  Shutdown();
  models_.Stop();
}

void Server::Shutdown() {
  if (http_ == nullptr || std::exchange(stopped_, true)) return;
  models_.Drain();
  puller_.Stop();
  http_->EndKeepAlive();
  const auto wait = [&](double seconds) {
    for (double left = seconds; left > 0 && http_->answering() > 0; left -= 0.01) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  wait(options_.shutdown_seconds);
  models_.AbortAll(AbortReason::kShutdown);
  wait(options_.http.limits.write_seconds);
  http_->Stop();
}

void Server::Get(const std::string& path, Handler handler, bool open) {
  routes_[path] = {
      .method = "GET",
      .open = open,
      .quick = true,
      .answer = [this, handler](const HeldRequest& request, const HttpExchange& exchange) {
        exchange.Reply((this->*handler)(*request));
      }};
}

void Server::ReplaceKeys(ApiKeys keys) {
  FT_CHECK(!keys.empty());
  const std::lock_guard lock(keys_mutex_);
  if (keys_ != nullptr) keys_ = std::make_shared<const ApiKeys>(std::move(keys));
}

std::shared_ptr<const ApiKeys> Server::Keys() const {
  const std::lock_guard lock(keys_mutex_);
  return keys_;
}

// Screen has noted the key that lets a request in, where keys are asked for.
Caller Server::CallerOf(const HttpHead& head) const {
  auto key = std::static_pointer_cast<const ApiKey>(head.client);
  if (key == nullptr) return {.client = head.peer};
  return {.client = key->name, .key = key};
}

// The model that a body asks for. Of a body that asks for none because it is wrong as a whole, what
// is wrong with that.
std::variant<ModelRegistry::Index, ApiError> Server::ModelOf(const Door& door,
                                                             const std::string& body) const {
  if (models_.answers_any_name()) return models_.Resolve({});
  const std::string name = ModelNamed(body);
  if (name.empty()) {
    const Result<ApiRequest> read = door.read(body, models_.spec(0).options.defaults);
    if (!read.ok()) return Refusal(read.error());
  }
  return models_.Resolve(name);
}

// Does `work` with the model when it is loaded.
void Server::WithModel(const std::variant<ModelRegistry::Index, ApiError>& model, const Door& door,
                       const HeldRequest& request, const HttpExchange& exchange,
                       std::function<void(const ModelRegistry::Lease&)> work) {
  if (const auto* error = std::get_if<ApiError>(&model)) {
    return exchange.Reply(ErrorReply(*error, door));
  }
  const auto answer = [&door, exchange, work = std::move(work)](const ModelRegistry::Answer& got) {
    if (const auto* error = std::get_if<ApiError>(&got)) {
      return exchange.Reply(ErrorReply(*error, door));
    }
    work(std::get<ModelRegistry::Lease>(got));
  };
  const auto now = models_.Acquire(
      std::get<ModelRegistry::Index>(model),
      [this, &door, request, exchange, answer](ModelRegistry::Answer got) {
        Enqueue(door, request, exchange, [answer, got = std::move(got)] { answer(got); });
      });
  if (now.has_value()) answer(*now);
}

void Server::AddDoor(const Door& door, std::string_view path) {
  routes_[std::string(path)] = {
      .method = "POST",
      .door = &door,
      .answer = [this, &door](const HeldRequest& request, const HttpExchange& exchange) {
        const auto arrived = std::chrono::steady_clock::now();
        WithModel(ModelOf(door, request->body), door, request, exchange,
                  [this, &door, request, arrived, exchange](const ModelRegistry::Lease& service) {
                    ReplyToGeneration(door, service, CallerOf(request->head), request, arrived,
                                      pool_.get(), exchange);
                  });
      }};
}

// What clients ask of a model besides generations.
void Server::AddQuery(const std::string& method, const std::string& path, const Door& door,
                      Query query) {
  const auto reply = [&door, query](const Service& service, const HttpRequest& request) {
    return ReplyOf(query(service, request), door);
  };
  routes_[path] = {.method = method,
                   .loads = true,
                   .door = &door,
                   .answer = [this, method, &door, reply](const HeldRequest& request,
                                                          const HttpExchange& exchange) {
                     const std::string name = method == "GET" ? request->head.QueryValue("model")
                                                              : ModelNamed(request->body);
                     WithModel(models_.Resolve(name), door, request, exchange,
                               [reply, request, exchange](const ModelRegistry::Lease& service) {
                                 exchange.Reply(reply(*service, *request));
                               });
                   }};
}

void Server::AddRoutes() {
  for (const Door* door :
       {&ChatDoor(), &CompletionDoor(), &ResponsesDoor(), &AnthropicDoor(), &LlamaCppDoor(),
        &LlamaCppInfillDoor(), &EmbeddingsDoor(), &LlamaCppEmbeddingDoor()}) {
    AddDoor(*door);
  }
  // As llama.cpp has them, whose paths without /v1 are its own forms where it has any.
  AddDoor(ChatDoor(), "/chat/completions");
  AddDoor(LlamaCppDoor(), "/completions");
  AddDoor(LlamaCppEmbeddingDoor(), "/embeddings");
  for (const Door* door :
       {&OllamaChatDoor(), &OllamaGenerateDoor(), &OllamaEmbedDoor(), &OllamaEmbeddingsDoor()}) {
    AddOllamaDoor(*door);
  }
  AddOllamaQueries();
  AddModelRoutes();
  AddQuery("POST", "/v1/messages/count_tokens", AnthropicDoor(), CountTokens);
  AddQuery("GET", "/slots", LlamaCppDoor(), Slots);
  AddQuery("GET", "/lora-adapters", LlamaCppDoor(), LoraAdapters);
  AddQuery("POST", "/apply-template", LlamaCppDoor(), ApplyTemplate);
  AddQuery("POST", "/tokenize", ChatDoor(), Tokenize);
  AddQuery("POST", "/detokenize", ChatDoor(), Detokenize);
  AddQuery("GET", "/props", ChatDoor(), [this](const Service& service, const HttpRequest&) {
    Json props = {{"version", options_.version}};
    props["build_info"] = "foretoken " + options_.version;
    props.update(PropsJson(service));
    props["chat_template"] = cards_.Known(models_.Find(service.id()))->chat_template;
    props["limits"]["body_bytes"] = options_.http.limits.body_bytes;
    return QueryAnswer(QueryReply{Dump(props), {}});
  });
  Get("/v1/models", &Server::Models);
  Get("/models", &Server::Models);
  Get("/v1/models/", &Server::Model);
  Get("/v1/responses/", &Server::Response);
  routes_["/v1/responses/"].method = "GET, DELETE";
  Get("/health", &Server::Health, /*open=*/true);
  Get("/v1/health", &Server::Health, /*open=*/true);
  Get("/metrics", &Server::Metrics);
  Get("/stats", &Server::Stats);
  AddPage();
}

void Server::AddPage() {
  for (const PageFile& file : PageFiles()) {
    const HttpReply reply = {
        .content_type = std::string(file.content_type),
        .body = std::string(file.body),
        .fields = {{"Content-Security-Policy", std::string(kPageSecurityPolicy)},
                   {"Cache-Control", "no-cache"}}};
    routes_[std::string(file.path)] = {
        .method = "GET",
        .open = true,
        .quick = true,
        .answer = [reply](const HeldRequest&, const HttpExchange& exchange) {
          exchange.Reply(reply);
        }};
  }
}

const Server::Route* Server::FindRoute(const std::string& path) const {
  const auto exact = routes_.find(path);
  if (exact != routes_.end()) return &exact->second;
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash + 1 == path.size()) return nullptr;
  for (std::size_t at = slash; at != std::string::npos && at > 0; at = path.rfind('/', at - 1)) {
    const auto below = routes_.find(path.substr(0, at + 1));
    if (below != routes_.end()) return &below->second;
  }
  return nullptr;
}

// What a request's head alone decides, before its body is read.
std::optional<HttpReply> Server::Screen(HttpHead* note) const {
  const HttpHead& head = *note;
  if (!KnowsHost(head)) {
    return Refused(403, fmt::format("the Host '{}' is none of this server's names; --allow-host "
                                    "adds one",
                                    Shortened(head.Field("Host"))));
  }
  if (head.method == "OPTIONS") return Preflight(head);
  const Route* route = FindRoute(head.path);
  if (route == nullptr) {
    return ErrorReply(
        {.status = 404,
         .message = fmt::format("there is no {} here; docs/look_up/api.md lists what there is",
                                Shortened(head.path)),
         .code = "unknown_url"},
        DoorAt(head.path));
  }
  const Door& door = *route->door;
  if (!Answers(route->method, head.method)) {
    HttpReply reply = Refused(405,
                              fmt::format("{} answers {} only, not {}", Shortened(head.path),
                                          route->method, Shortened(head.method)),
                              door);
    reply.fields.emplace_back("Allow", route->method);
    return reply;
  }
  if (auto refused = Unauthorized(*route, note)) return refused;
  // What a page of another site can send without asking (CORS): a form, or text; and a GET, whose
  // answer it cannot read, but which may load a model.
  if (route->loads && head.method != "POST" && FromForeignPage(head, options_.cors)) {
    return Refused(403,
                   "a page of another site may ask for this only where --cors allows it: it may "
                   "load a model",
                   door);
  }
  if (route->method == "POST" && !SaysJson(head) && FromForeignPage(head, options_.cors)) {
    return Refused(415,
                   "a page of another site may send JSON only, with 'Content-Type: "
                   "application/json', and only where --cors allows it",
                   door);
  }
  return std::nullopt;
}

// The answer to who brings none of the keys that are asked for; else notes which one that is.
std::optional<HttpReply> Server::Unauthorized(const Route& route, HttpHead* head) const {
  const std::shared_ptr<const ApiKeys> keys = Keys();
  if (route.open || keys == nullptr) return std::nullopt;
  if (const ApiKey* key = keys->Find(*head)) {
    head->client = std::shared_ptr<const ApiKey>(keys, key);
    return std::nullopt;
  }
  HttpReply reply = ErrorReply({.status = 401,
                                .message = "this server wants its API key in the header "
                                           "'Authorization: Bearer KEY' or 'x-api-key: KEY'",
                                .code = "invalid_api_key"},
                               *route.door);
  reply.fields.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

// A page of another site can have its own name resolve to this machine and then call as if it were
// the server's own page (DNS rebinding); its Host gives it away.
bool Server::KnowsHost(const HttpHead& head) const {
  const std::string& own = options_.http.host;
  if (!IsLoopback(own)) return true;
  std::string_view host = head.Field("Host");
  if (host.empty()) return true;  // HTTP/1.0; no browser.
  const std::size_t port = host.rfind(':');
  if (port != std::string_view::npos && host.find(']', port) == std::string_view::npos) {
    host = host.substr(0, port);
  }
  const auto& more = options_.allow_hosts;
  return IsLoopback(host) || EqualIgnoringCase(host, own) ||
         std::ranges::any_of(more,
                             [host](const auto& name) { return EqualIgnoringCase(host, name); });
}

// What a browser asks before a page of another origin may call.
HttpReply Server::Preflight(const HttpHead& head) const {
  HttpReply reply{.status = 204};
  if (options_.cors.empty()) return reply;
  const std::string wanted(head.Field("Access-Control-Request-Headers"));
  reply.fields = {
      {"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
      {"Access-Control-Allow-Headers", wanted.empty() ? "Authorization, Content-Type" : wanted},
      {"Access-Control-Max-Age", "86400"}};
  return reply;
}

void Server::Handle(HttpRequest request, const HttpExchange& exchange) {
  const Route& route = *FindRoute(request.head.path);
  if (route.quick) {
    return route.answer(std::make_shared<const HttpRequest>(std::move(request)), exchange);
  }
  std::shared_ptr<void> place = waiting_->Take(CallerOf(request.head).client, 1, kMaxWaiting);
  if (place == nullptr) {
    return exchange.Reply(Refused(
        503,
        fmt::format("{} requests of this client wait to be read; try again later", kMaxWaiting),
        *route.door));
  }
  struct Held {
    HttpRequest request;
    std::shared_ptr<void> place;
  };
  const auto held = std::make_shared<Held>(Held{std::move(request), std::move(place)});
  const HeldRequest waiting(held, &held->request);
  Enqueue(*route.door, waiting, exchange, [&route, held, waiting, exchange] {
    MendJson(&held->request.body);
    route.answer(waiting, exchange);
  });
}

// Has the pool do what answers a request.
void Server::Enqueue(const Door& door, const HeldRequest& request, const HttpExchange& exchange,
                     std::function<void()> work) {
  pool_->Run({.client = CallerOf(request->head).client,
              .takes_long = Job::TakesLong(request->body.size()),
              .unwanted = [exchange] { return exchange.over(); },
              .work = std::move(work),
              .failed = [&door, exchange] { exchange.Reply(ErrorReply(MemoryError(), door)); }});
}

void Server::Complete(const HttpHead* head, HttpReply* reply) const {
  if (head != nullptr) reply->fields.emplace_back("X-Request-Id", head->id);
  reply->fields.emplace_back("X-Content-Type-Options", "nosniff");
  if (options_.cors.empty()) return;
  reply->fields.emplace_back("Access-Control-Allow-Origin", options_.cors);
  // Clients read the request's id and when to try again.
  reply->fields.emplace_back("Access-Control-Expose-Headers", "*");
  reply->fields.emplace_back("Vary", "Origin");
}

// Nothing while requests are taken; else the 503 to answer with.
std::optional<ApiError> Server::Unready() const {
  if (models_.draining()) return AbortError(AbortReason::kShutdown, 0);
  const bool preloads = models_.began_with_one() && models_.status(0).loads == 0;
  if (!preloads) return std::nullopt;
  return ApiError{.status = 503,
                  .message = "the model is being loaded; try again in a moment",
                  .type = "server_error",
                  .code = "loading"};
}

HttpReply Server::Models(const HttpRequest&) { return JsonReply(ModelsJson(models_, began_)); }

HttpReply Server::Model(const HttpRequest& request) {
  const std::string name = request.head.path.substr(std::string_view("/v1/models/").size());
  const ModelRegistry::Index found = models_.Find(name);
  if (found == ModelRegistry::kNone) return ErrorReply(models_.UnknownModel(name));
  return JsonReply(ModelJson(models_, found, began_));
}

// A response that is kept, or that there is none any more.
HttpReply Server::Response(const HttpRequest& request) {
  const std::string id = request.head.path.substr(std::string_view("/v1/responses/").size());
  const std::string client = CallerOf(request.head).client;
  const auto kept = responses_->Find(client, id);
  if (kept == nullptr) {
    return ErrorReply({.status = 404,
                       .message = fmt::format(
                           "Response with id '{}' not found. This server keeps the latest ones "
                           "only.",
                           Shortened(id)),
                       .param = "id"});
  }
  if (request.head.method != "DELETE") {
    return {.content_type = "application/json", .body = kept->json};
  }
  responses_->Remove(client, id);
  return JsonReply({{"id", id}, {"object", "response"}, {"deleted", true}});
}

HttpReply Server::Health(const HttpRequest&) {
  if (auto error = Unready()) return ErrorReply(*error);
  for (ModelRegistry::Index i = 0; i < models_.size(); ++i) {
    const ModelRegistry::Lease served = models_.Peek(i);
    const double stuck = served == nullptr ? 0 : served->engine().SecondsWithoutProgress();
    if (stuck < models_.spec(i).options.stall_seconds) continue;
    return ErrorReply({.status = 503,
                       .message = fmt::format("the engine of '{}' has work but has made no "
                                              "progress for {:.0f} seconds",
                                              models_.spec(i).id, stuck),
                       .type = "server_error",
                       .code = "stalled"});
  }
  return JsonReply({{"status", "ok"}});
}

HttpReply Server::Metrics(const HttpRequest&) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = MetricsText(models_)};
}

HttpReply Server::Stats(const HttpRequest& request) {
  if (auto error = Unready()) return ErrorReply(*error);
  const auto model = models_.Resolve(request.head.QueryValue("model"));
  if (const auto* error = std::get_if<ApiError>(&model)) return ErrorReply(*error);
  const auto index = std::get<ModelRegistry::Index>(model);
  const ModelRegistry::Lease served = models_.Peek(index);
  if (served != nullptr) return JsonReply(StatsJson(*served, models_.outcomes(index)));
  return ErrorReply({.status = 503,
                     .message = fmt::format("the model '{}' is not loaded; a request for it loads "
                                            "it",
                                            models_.spec(index).id),
                     .type = "server_error",
                     .code = "not_loaded"});
}

}  // namespace foretoken::server
