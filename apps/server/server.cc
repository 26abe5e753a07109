#include "server/server.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/exhaustion.h"
#include "base/utf8.h"
#include "server/access/loopback.h"
#include "server/doors/anthropic.h"
#include "server/doors/embeddings.h"
#include "server/doors/llama_cpp.h"
#include "server/doors/ollama.h"
#include "server/doors/responses.h"
#include "server/doors/tokenize.h"
#include "server/metrics.h"
#include "server/page/page.h"
#include "server/replies.h"

namespace foretoken::server {
namespace {

constexpr char kJson[] = "application/json";
constexpr int kWorkThreads = 4;
constexpr int kMaxWaiting = 1024;  // Requests that wait to be read.

// What the server refuses before it looks at what is asked.
HttpReply Refused(int status, const std::string& sentence, const Door& door = ChatDoor()) {
  ApiError error{.status = status, .message = sentence};
  if (status == 413) error.code = "body_too_large";
  if (status >= 500) error.type = "server_error";
  if (status == 503) error.retry_after = 1;
  return ErrorReply(error, door);
}

OrderedJson SamplingJson(const SamplingParams& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"presence_penalty", sampling.presence_penalty}};
}

OrderedJson PlanJson(const PlanOptions& plan) {
  return {{"mode", ModeName(*plan.mode)},
          {"lookahead", *plan.lookahead},
          {"fanout", plan.fanout->counts},
          {"fallback", FallbackName(*plan.fallback)},
          {"tree_width", *plan.tree_width}};
}

// Without keys, who calls from this machine is its user.
ServiceOptions ServiceOptionsOf(const ServerOptions& options) {
  ServiceOptions service = options.service;
  service.clients_are_one = options.keys.empty() && IsLoopback(options.http.host);
  return service;
}

}  // namespace

Server::Server(ServerOptions options, ModelLoader load)
    : options_(std::move(options)), service_(ServiceOptionsOf(options_), std::move(load)) {
  AddRoutes();
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, ModelLoader load) {
  FT_ASSIGN_OR_RETURN(
      std::unique_ptr<Server> server, OrExhausted([&]() -> Result<std::unique_ptr<Server>> {
        return std::unique_ptr<Server>(new Server(std::move(options), std::move(load)));
      }));
  FT_ASSIGN_OR_RETURN(server->log_,
                      AccessLog::Open(server->options_.log_file, server->options_.verbose));
  FT_ASSIGN_OR_RETURN(server->pool_, WorkPool::Start(kWorkThreads, kMaxWaiting));
  Server* const own = server.get();
  const HttpApp app = {
      .screen = [own](HttpHead* head) { return own->Screen(head); },
      .handle = [own](HttpRequest request,
                      HttpExchange exchange) { own->Handle(std::move(request), exchange); },
      .refuse = [](int status, const std::string& sentence) { return Refused(status, sentence); },
      .complete = [own](const HttpHead* head, HttpReply* reply) { own->Complete(head, reply); },
      .log = [own](const HttpAccess& access) { own->log_.Write(access); }};
  FT_ASSIGN_OR_RETURN(server->http_, HttpServer::Start(own->options_.http, app));
  return server;
}

Server::~Server() { Shutdown(); }

void Server::Shutdown() {
  if (http_ == nullptr || std::exchange(stopped_, true)) return;
  service_.Drain();
  http_->EndKeepAlive();
  const auto wait = [&](double seconds) {
    for (double left = seconds; left > 0 && http_->answering() > 0; left -= 0.01) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  wait(options_.shutdown_seconds);
  service_.engine().AbortAll(AbortReason::kShutdown);
  wait(options_.http.limits.write_seconds);
  http_->Stop();
}

void Server::Get(const std::string& path, Handler handler, bool open) {
  routes_[path] = {
      .method = "GET",
      .open = open,
      .quick = true,
      .answer = [this, handler](const HttpRequest& request, const HttpExchange& exchange) {
        exchange.Reply((this->*handler)(request));
      }};
}

void Server::Post(const std::string& path, Handler handler) {
  Get(path, handler);
  routes_[path].method = "POST";
  routes_[path].quick = false;
}

// Screen has let nobody through without a key where keys are asked for.
Caller Server::CallerOf(const HttpHead& head) const {
  if (options_.keys.empty()) return {.client = head.peer};
  FT_CHECK(head.client >= 0);
  const ApiKey& key = options_.keys.at(head.client);
  return {.client = key.name, .key = &key};
}

void Server::AddDoor(const Door& door) {
  routes_[std::string(door.path)] = {
      .method = "POST",
      .door = &door,
      .answer = [this, &door](const HttpRequest& request, const HttpExchange& exchange) {
        ReplyToGeneration(door, &service_, CallerOf(request.head), request, exchange);
      }};
}

// What a door's clients ask besides generations.
void Server::AddQuery(const std::string& method, const std::string& path, const Door& door,
                      Query query) {
  routes_[path] = {
      .method = method,
      .door = &door,
      .answer = [this, &door, query](const HttpRequest& request, const HttpExchange& exchange) {
        if (auto error = service_.Unready()) return exchange.Reply(ErrorReply(*error, door));
        const QueryAnswer answer = query(service_, request);
        if (const auto* error = std::get_if<ApiError>(&answer)) {
          return exchange.Reply(ErrorReply(*error, door));
        }
        const auto& found = std::get<QueryReply>(answer);
        HttpReply reply = JsonReply(found.json);
        NameIgnored(found.ignored, &reply);
        exchange.Reply(std::move(reply));
      }};
}

void Server::AddRoutes() {
  for (const Door* door :
       {&ChatDoor(), &CompletionDoor(), &ResponsesDoor(), &AnthropicDoor(), &LlamaCppDoor(),
        &OllamaChatDoor(), &OllamaGenerateDoor(), &EmbeddingsDoor(), &OllamaEmbedDoor(),
        &OllamaEmbeddingsDoor(), &LlamaCppEmbeddingDoor()}) {
    AddDoor(*door);
  }
  AddQuery("POST", "/v1/messages/count_tokens", AnthropicDoor(), CountTokens);
  AddQuery("GET", "/slots", LlamaCppDoor(), Slots);
  AddQuery("POST", "/apply-template", LlamaCppDoor(), ApplyTemplate);
  AddQuery("GET", "/api/tags", OllamaChatDoor(), OllamaTags);
  AddQuery("POST", "/api/show", OllamaChatDoor(), OllamaShow);
  AddQuery("GET", "/api/version", OllamaChatDoor(),
           [this](const Service&, const HttpRequest&) -> QueryAnswer {
             return QueryReply{OrderedJson::object({{"version", options_.version}}), {}};
           });
  Get("/v1/models", &Server::Models);
  Get("/v1/models/", &Server::Model);
  Get("/health", &Server::Health, /*open=*/true);
  Get("/metrics", &Server::Metrics);
  Get("/props", &Server::Props);
  Get("/stats", &Server::Stats);
  Post("/tokenize", &Server::Tokenize);
  Post("/detokenize", &Server::Detokenize);
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
        .answer = [reply](const HttpRequest&, const HttpExchange& exchange) {
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
         .message = fmt::format("there is no {} here; docs/api.md lists what there is",
                                Shortened(head.path)),
         .code = "unknown_url"});
  }
  const Door& door = *route->door;
  const bool asks =
      head.method == route->method || (head.method == "HEAD" && route->method == "GET");
  if (!asks) {
    HttpReply reply = Refused(405,
                              fmt::format("{} answers {} only, not {}", Shortened(head.path),
                                          route->method, Shortened(head.method)),
                              door);
    reply.fields.emplace_back("Allow", route->method);
    return reply;
  }
  if (auto refused = Unauthorized(*route, note)) return refused;
  // Not what a form of a foreign page can send without asking (CORS).
  if (route->method == "POST" && !head.Field("Content-Type").starts_with(kJson)) {
    return Refused(415, "the body must be JSON with 'Content-Type: application/json'", door);
  }
  return std::nullopt;
}

// The answer to who brings none of the keys that are asked for; else notes which one that is.
std::optional<HttpReply> Server::Unauthorized(const Route& route, HttpHead* head) const {
  if (route.open || options_.keys.empty()) return std::nullopt;
  head->client = options_.keys.Find(*head);
  if (head->client >= 0) return std::nullopt;
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
  return IsLoopback(host) || host == own || std::find(more.begin(), more.end(), host) != more.end();
}

// What a browser asks before a page of another origin may call.
HttpReply Server::Preflight(const HttpHead& head) const {
  HttpReply reply{.status = 204};
  if (options_.cors.empty()) return reply;
  const std::string wanted(head.Field("Access-Control-Request-Headers"));
  reply.fields = {
      {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
      {"Access-Control-Allow-Headers", wanted.empty() ? "Authorization, Content-Type" : wanted},
      {"Access-Control-Max-Age", "86400"}};
  return reply;
}

void Server::Handle(HttpRequest request, const HttpExchange& exchange) {
  const Route& route = *FindRoute(request.head.path);
  if (route.quick) return route.answer(request, exchange);
  const auto held = std::make_shared<const HttpRequest>(std::move(request));
  const bool taken = pool_->Run(
      [&route, held, exchange] { route.answer(*held, exchange); },
      [&route, exchange] {
        exchange.Reply(Refused(503, "there is not enough memory for this request", *route.door));
      });
  if (taken) return;
  exchange.Reply(Refused(503, "too many requests wait to be read; try again later", *route.door));
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

OrderedJson Server::ModelJson() const {
  return {{"id", model().id},
          {"object", "model"},
          {"created", model().loaded},
          {"owned_by", "foretoken"},
          {"max_model_len", model().engine->limits().context}};
}

HttpReply Server::Models(const HttpRequest&) {
  if (auto error = service_.Unready()) return ErrorReply(*error);
  return JsonReply({{"object", "list"}, {"data", OrderedJson::array({ModelJson()})}});
}

HttpReply Server::Model(const HttpRequest& request) {
  if (auto error = service_.Unready()) return ErrorReply(*error);
  const std::string id = request.head.path.substr(std::string_view("/v1/models/").size());
  if (id != model().id) return ErrorReply(UnknownModel(id, model().id));
  return JsonReply(ModelJson());
}

HttpReply Server::Health(const HttpRequest&) {
  const double stuck = service_.engine().SecondsWithoutProgress();
  if (auto error = service_.Unready()) return ErrorReply(*error);
  if (stuck < options_.service.stall_seconds) return JsonReply({{"status", "ok"}});
  return ErrorReply({.status = 503,
                     .message = fmt::format("the engine has work but has made no progress for "
                                            "{:.0f} seconds",
                                            stuck),
                     .type = "server_error",
                     .code = "stalled"});
}

HttpReply Server::Metrics(const HttpRequest&) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = MetricsText(service_)};
}

HttpReply Server::Stats(const HttpRequest&) {
  if (auto error = service_.Unready()) return ErrorReply(*error);
  return JsonReply(StatsJson(service_));
}

HttpReply Server::Props(const HttpRequest&) {
  if (auto error = service_.Unready()) return ErrorReply(*error);
  const EngineLimits limits = model().engine->limits();
  const Tokenizer& tokenizer = model().tokenizer();
  std::vector<std::string> modes;
  for (const Mode mode : OfferedModes(*model().engine)) modes.emplace_back(ModeName(mode));
  const OrderedJson props = {{"version", options_.version},
                             {"model", model().id},
                             {"context", limits.context},
                             {"vocabulary", tokenizer.vocabulary()},
                             {"tokenizer_fingerprint", tokenizer.fingerprint()},
                             {"chat", tokenizer.has_chat_template()},
                             {"modes", modes},
                             {"speculation", PlanJson(model().engine->plan())},
                             {"sampling", SamplingJson(options_.service.defaults.sampling)},
                             {"limits",
                              {{"batch", limits.batch},
                               {"queue", limits.queue},
                               {"client_sequences", service_.ClientShare()},
                               {"lookahead", limits.lookahead},
                               {"cache_budget", limits.cache_budget},
                               {"choices", kMaxChoices},
                               {"body_bytes", options_.http.limits.body_bytes},
                               {"request_seconds", options_.service.request_seconds}}}};
  return JsonReply(props);
}

HttpReply Server::Tokenize(const HttpRequest& request) {
  if (auto error = service_.Unready()) return ErrorReply(*error);
  const Result<TokenizeRequest> parsed = ParseTokenizeRequest(request.body);
  if (!parsed.ok()) return ErrorReply(Refusal(parsed.error()));
  const Tokenizer& tokenizer = model().tokenizer();
  const std::vector<Token> tokens =
      tokenizer.Encode(parsed->content, parsed->add_special, parsed->parse_special);
  // Written as it goes: a JSON value would take ten times the memory of its text.
  std::string text = "{\"tokens\":[";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ',';
    if (parsed->with_pieces) {
      text += Dump({{"id", tokens[i]}, {"piece", TokenText(tokenizer, tokens[i])}});
    } else {
      text += std::to_string(tokens[i]);
    }
  }
  text += fmt::format("],\"count\":{}}}", tokens.size());
  return {.content_type = kJson, .body = std::move(text)};
}

HttpReply Server::Detokenize(const HttpRequest& request) {
  if (auto error = service_.Unready()) return ErrorReply(*error);
  const Tokenizer& tokenizer = model().tokenizer();
  const Result<std::vector<Token>> tokens =
      ParseDetokenizeRequest(request.body, tokenizer.vocabulary());
  if (!tokens.ok()) return ErrorReply(Refusal(tokens.error()));
  return JsonReply({{"content", DecodeTokens(tokenizer, *tokens)}});
}

}  // namespace foretoken::server
