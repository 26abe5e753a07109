#include "server/server.h"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <utility>

#include "base/sha256.h"
#include "server/metrics.h"
#include "server/page.h"
#include "server/replies.h"

namespace foretoken::server {
namespace {

constexpr char kJson[] = "application/json";

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

}  // namespace

Server::Server(ServerOptions options, ModelLoader load)
    : options_(std::move(options)),
      api_key_digest_(options_.api_key.empty() ? "" : Sha256Hex(options_.api_key)),
      service_(options_.service, std::move(load)),
      http_(options_.connections) {
  AddRoutes();
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, ModelLoader load) {
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(load)));
  const ServerOptions& own = server->options_;
  server->port_ = own.port != 0 ? own.port : server->http_.bind_to_any_port(own.host);
  const bool bound =
      own.port != 0 ? server->http_.bind_to_port(own.host, own.port) : server->port_ > 0;
  if (!bound) {
    return InvalidInput(fmt::format(
        "cannot listen at {}:{}: the address is not this machine's or the port is taken", own.host,
        own.port));
  }
  server->listener_ = std::thread([http = &server->http_] { http->listen_after_bind(); });
  return server;
}

Server::~Server() { Shutdown(); }

void Server::Shutdown() {
  if (!listener_.joinable()) return;
  service_.Drain();
  http_.EndKeepAlive();
  const auto step = std::chrono::milliseconds(10);
  const auto wait = [&](double seconds) {
    for (double left = seconds; left > 0 && in_flight_ > 0; left -= 0.01) {
      std::this_thread::sleep_for(step);
    }
  };
  wait(options_.shutdown_seconds);
  service_.engine().AbortAll(AbortReason::kShutdown);
  wait(static_cast<double>(options_.connections.write.count()));
  while (!http_.is_running()) std::this_thread::sleep_for(step);  // stop() before it is lost.
  http_.stop();
  listener_.join();
}

void Server::Get(const std::string& path, Handler handler, bool open) {
  methods_[path] = "GET";
  http_.Get(path, [this, handler, open](const httplib::Request& request, httplib::Response& reply) {
    if (!open && !Authorised(request)) return ReplyUnauthorised(&reply);
    (this->*handler)(request, &reply);
  });
}

void Server::Post(const std::string& path, Handler handler) {
  methods_[path] = "POST";
  http_.Post(path, [this, handler](const httplib::Request& request, httplib::Response& reply) {
    if (!Authorised(request)) return ReplyUnauthorised(&reply);
    // Not what a form of a foreign page can send without asking (CORS).
    if (!request.get_header_value("Content-Type").starts_with(kJson)) {
      return ReplyError(
          {.status = 415, .message = "the body must be JSON with 'Content-Type: application/json'"},
          &reply);
    }
    (this->*handler)(request, &reply);
  });
}

void Server::AddRoutes() {
  Post("/v1/chat/completions", &Server::Generate<ApiKind::kChat>);
  Post("/v1/completions", &Server::Generate<ApiKind::kCompletion>);
  Get("/v1/models", &Server::Models);
  Get("/health", &Server::Health, /*open=*/true);
  Get("/metrics", &Server::Metrics);
  Get("/props", &Server::Props);
  Get("/stats", &Server::Stats);
  Post("/tokenize", &Server::Tokenize);
  Post("/detokenize", &Server::Detokenize);
  AddPage();

  http_.Options(".*", [this](const httplib::Request&, httplib::Response& reply) {
    reply.status = 204;
    if (options_.cors.empty()) return;
    reply.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    reply.set_header("Access-Control-Allow-Headers", "Authorization, Content-Type");
    reply.set_header("Access-Control-Max-Age", "86400");
  });
  http_.set_post_routing_handler([this](const httplib::Request&, httplib::Response& reply) {
    reply.set_header("X-Content-Type-Options", "nosniff");
    if (options_.cors.empty()) return;
    reply.set_header("Access-Control-Allow-Origin", options_.cors);
    reply.set_header("Vary", "Origin");
  });
  http_.set_error_handler([this](const httplib::Request& request, httplib::Response& reply) {
    if (reply.body.empty()) ReplyUnhandled(request, &reply);
  });
  http_.set_exception_handler(
      [](const httplib::Request&, httplib::Response& reply, const std::exception_ptr&) {
        ReplyError({.status = 500,
                    .message = "the server made a mistake while answering; please report it",
                    .type = "server_error"},
                   &reply);
      });
}

void Server::AddPage() {
  for (const PageFile& file : PageFiles()) {
    methods_[std::string(file.path)] = "GET";
    http_.Get(std::string(file.path), [file](const httplib::Request&, httplib::Response& reply) {
      reply.set_header("Content-Security-Policy", std::string(kPageSecurityPolicy));
      reply.set_header("Cache-Control", "no-cache");
      reply.set_content(file.body.data(), file.body.size(), std::string(file.content_type));
    });
  }
}

bool Server::Authorised(const httplib::Request& request) const {
  if (api_key_digest_.empty()) return true;
  const std::string header = request.get_header_value("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  const bool bearer = header.starts_with(kScheme);
  const std::string digest = Sha256Hex(bearer ? header.substr(kScheme.size()) : "");
  // In the same time wherever they differ.
  const bool same =
      CRYPTO_memcmp(digest.data(), api_key_digest_.data(), api_key_digest_.size()) == 0;
  return same && bearer;
}

void Server::ReplyUnauthorised(httplib::Response* response) const {
  response->set_header("WWW-Authenticate", "Bearer");
  ReplyError({.status = 401,
              .message = "this server wants its API key in the header 'Authorization: Bearer KEY'",
              .code = "invalid_api_key"},
             response);
}

// What httplib itself refuses, or finds no handler for.
void Server::ReplyUnhandled(const httplib::Request& request, httplib::Response* response) const {
  ApiError error{.status = response->status};
  const auto known = methods_.find(request.path);
  if (error.status == 404 && known != methods_.end()) {
    error.status = 405;
    error.message =
        fmt::format("{} answers {} only, not {}", request.path, known->second, request.method);
    response->set_header("Allow", known->second);
  } else if (error.status == 404) {
    error.message =
        fmt::format("there is no {} here; docs/api.md lists what there is", request.path);
    error.code = "unknown_url";
  } else if (error.status == 413) {
    error.message = fmt::format("the body is larger than the {} bytes that this server takes",
                                options_.connections.body_bytes);
    error.code = "body_too_large";
  } else if (error.status == 414) {
    error.message = "the address is too long";
  } else {
    error.message = "this is not an HTTP request that the server understands";
  }
  if (error.status >= 500) error.type = "server_error";
  ReplyError(error, response);
}

template <ApiKind kind>
void Server::Generate(const httplib::Request& request, httplib::Response* response) {
  ReplyToGeneration(kind, &service_, &in_flight_, request, response);
}

void Server::Models(const httplib::Request&, httplib::Response* response) {
  if (auto error = service_.Unready()) return ReplyError(*error, response);
  const OrderedJson entry = {{"id", model().id},
                             {"object", "model"},
                             {"created", 0},
                             {"owned_by", "foretoken"},
                             {"max_model_len", model().engine->limits().context}};
  response->set_content(Dump({{"object", "list"}, {"data", OrderedJson::array({entry})}}), kJson);
}

void Server::Health(const httplib::Request&, httplib::Response* response) {
  const double stuck = service_.engine().SecondsWithoutProgress();
  if (auto error = service_.Unready()) {
    ReplyError(*error, response);
  } else if (stuck >= options_.service.stall_seconds) {
    ReplyError({.status = 503,
                .message = fmt::format("the engine has work but has made no progress for {:.0f} "
                                       "seconds",
                                       stuck),
                .type = "server_error",
                .code = "stalled"},
               response);
  } else {
    response->set_content(R"({"status":"ok"})", kJson);
  }
}

void Server::Metrics(const httplib::Request&, httplib::Response* response) {
  response->set_content(MetricsText(service_), "text/plain; version=0.0.4; charset=utf-8");
}

void Server::Stats(const httplib::Request&, httplib::Response* response) {
  if (auto error = service_.Unready()) return ReplyError(*error, response);
  response->set_content(Dump(StatsJson(service_)), kJson);
}

void Server::Props(const httplib::Request&, httplib::Response* response) {
  if (auto error = service_.Unready()) return ReplyError(*error, response);
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
                               {"lookahead", limits.lookahead},
                               {"cache_budget", limits.cache_budget},
                               {"choices", kMaxChoices},
                               {"body_bytes", options_.connections.body_bytes},
                               {"request_seconds", options_.service.request_seconds}}}};
  response->set_content(Dump(props), kJson);
}

void Server::Tokenize(const httplib::Request& request, httplib::Response* response) {
  if (auto error = service_.Unready()) return ReplyError(*error, response);
  const Result<TokenizeRequest> parsed = ParseTokenizeRequest(request.body);
  if (!parsed.ok()) return ReplyError(Refusal(parsed.error()), response);
  const Tokenizer& tokenizer = model().tokenizer();
  const std::vector<Token> tokens =
      tokenizer.Encode(parsed->content, parsed->add_special, parsed->parse_special);
  OrderedJson list = tokens;
  if (parsed->with_pieces) {
    list = OrderedJson::array();
    for (const Token token : tokens) {
      list.push_back({{"id", token}, {"piece", TokenText(tokenizer, token)}});
    }
  }
  response->set_content(Dump({{"tokens", std::move(list)}, {"count", tokens.size()}}), kJson);
}

void Server::Detokenize(const httplib::Request& request, httplib::Response* response) {
  if (auto error = service_.Unready()) return ReplyError(*error, response);
  const Tokenizer& tokenizer = model().tokenizer();
  const Result<std::vector<Token>> tokens =
      ParseDetokenizeRequest(request.body, tokenizer.vocabulary());
  if (!tokens.ok()) return ReplyError(Refusal(tokens.error()), response);
  response->set_content(Dump({{"content", DecodeTokens(tokenizer, *tokens)}}), kJson);
}

}  // namespace foretoken::server
