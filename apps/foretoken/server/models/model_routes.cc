// What clients ask of models themselves, and how long they stay loaded: parts of Server.

#include <chrono>
#include <ctime>
#include <memory>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/doors/doors.h"
#include "apps/foretoken/server/doors/ollama_models.h"
#include "apps/foretoken/server/queries.h"
#include "apps/foretoken/server/replies.h"
#include "apps/foretoken/server/server.h"
#include "apps/foretoken/server/slots/slot_requests.h"

namespace foretoken::server {
namespace {

// Whose API is kept to: clients refuse servers that call themselves older than they need.
constexpr char kOllamaVersion[] = "0.12.6";

// Tells a client how the model comes that it wants: as lines, or when it is there.
class PullReply : public std::enable_shared_from_this<PullReply> {
 public:
  PullReply(std::string name, bool stream, HttpExchange exchange)
      : name_(std::move(name)), stream_(stream), exchange_(std::move(exchange)) {}

  PullListener Listener() {
    return {.gone = [self = shared_from_this()] { return self->exchange_.over(); },
            .progress =
                [self = shared_from_this()](std::uint64_t done, std::uint64_t all) {
                  if (self->stream_) self->Progress(done, all);
                },
            .done = [self = shared_from_this()](const Status& status) { self->Done(status); }};
  }

 private:
  void Progress(std::uint64_t done, std::uint64_t all) {
    const Json fetching = {{"status", "pulling " + name_}, {"total", all}, {"completed", done}};
    Append(all == 0 ? Json{{"status", "pulling manifest"}} : fetching, /*last=*/false);
  }

  void Done(const Status& status) {
    if (status.ok() && stream_) return Append({{"status", "success"}}, /*last=*/true);
    if (status.ok()) return exchange_.Reply(OllamaPulled(/*stream=*/false));
    const bool own = status.error().code == ErrorCode::kInvalidInput;
    const ApiError error{.status = own ? 400 : 502, .message = status.error().message};
    exchange_.Post([self = shared_from_this(), error] {
      if (!self->begun_) return self->exchange_.Reply(ErrorReply(error, OllamaChatDoor()));
      self->Append({{"error", BoundedMessage(error)}}, /*last=*/true);
    });
  }

  void Append(const Json& line, bool last) {
    exchange_.Post([self = shared_from_this(), text = Dump(line) + "\n", last] {
      if (!std::exchange(self->begun_, true)) {
        self->exchange_.Begin({.content_type = std::string(OllamaChatDoor().stream_type)});
      }
      self->exchange_.Write(text, nullptr);
      if (last) self->exchange_.End();
    });
  }

  const std::string name_;
  const bool stream_;
  const HttpExchange exchange_;
  bool begun_ = false;  // The HTTP server's thread only.
};

}  // namespace

// Ollama's requests also say how long their model stays loaded; one that asks for nothing else
// loads it, or has it unloaded.
void Server::AddOllamaDoor(const Door& door) {
  const auto answer = [this, &door](const HeldRequest& request, const HttpExchange& exchange) {
    const auto arrived = std::chrono::steady_clock::now();
    const Result<OllamaKeeping> keeping = ReadOllamaKeeping(request->body);
    if (!keeping.ok()) return exchange.Reply(ErrorReply(Refusal(keeping.error()), door));
    const auto model = ModelOf(door, request->body);
    const auto* found = std::get_if<ModelRegistry::Index>(&model);
    const auto nothing = [&door](const std::string& id, std::string_view reason) {
      return JsonReply(OllamaNothingAsked(door, id, reason, std::time(nullptr)));
    };
    if (found != nullptr && keeping->unloads()) {
      models_.KeepFor(*found, keeping->keep);
      return exchange.Reply(nothing(models_.spec(*found).id, "unload"));
    }
    WithModel(model, door, request, exchange,
              [this, &door, request, arrived, exchange, keeping = *keeping, nothing,
               index = found == nullptr ? ModelRegistry::kNone
                                        : *found](const ModelRegistry::Lease& service) {
                models_.KeepFor(index, keeping.keep);
                if (keeping.asks_nothing) return exchange.Reply(nothing(service->id(), "load"));
                ReplyToGeneration(door, service, CallerOf(request->head), request, arrived,
                                  pool_.get(), exchange);
              });
  };
  routes_[std::string(door.path)] = {.method = "POST", .door = &door, .answer = answer};
}

// llama.cpp's: has a model loaded or unloaded, for which nobody waits.
void Server::AddModelSwitch(const std::string& path,
                            std::function<void(ModelRegistry::Index)> change) {
  routes_[path] = {.method = "POST",
                   .door = &LlamaCppDoor(),
                   .answer = [this, change = std::move(change)](const HeldRequest& request,
                                                                const HttpExchange& exchange) {
                     const auto model = models_.Resolve(ModelNamed(request->body));
                     if (const auto* error = std::get_if<ApiError>(&model)) {
                       return exchange.Reply(ErrorReply(*error, LlamaCppDoor()));
                     }
                     change(std::get<ModelRegistry::Index>(model));
                     exchange.Reply(JsonReply({{"success", true}}));
                   }};
}

// What an API has and this server has not.
void Server::AddRefusal(const std::string& method, const std::string& path, const Door& door,
                        ApiError error) {
  routes_[path] = {.method = method,
                   .quick = true,
                   .door = &door,
                   .answer = [&door, error = std::move(error)](const HeldRequest&,
                                                               const HttpExchange& exchange) {
                     exchange.Reply(ErrorReply(error, door));
                   }};
}

// What Ollama's clients ask of models themselves.
void Server::AddOllamaQueries() {
  const Door& door = OllamaChatDoor();
  const auto add = [&](const std::string& method, const std::string& path,
                       std::function<HttpReply(const HttpRequest&)> reply) {
    routes_[path] = {.method = method,
                     .door = &door,
                     .answer = [reply = std::move(reply)](const HeldRequest& request,
                                                          const HttpExchange& exchange) {
                       exchange.Reply(reply(*request));
                     }};
  };
  add("GET", "/api/tags",
      [this](const HttpRequest&) { return JsonReply(OllamaTags(models_, &cards_, began_)); });
  add("GET", "/api/ps",
      [this](const HttpRequest&) { return JsonReply(OllamaRunning(models_, &cards_)); });
  add("POST", "/api/show", [this, &door](const HttpRequest& request) {
    return ReplyOf(OllamaShow(models_, &cards_, began_, request), door);
  });
  routes_["/api/pull"] = {
      .method = "POST",
      .door = &door,
      .answer = [this](const HeldRequest& request, const HttpExchange& exchange) {
        AnswerPull(*request, exchange);
      }};
  Get("/api/version", &Server::Version);
  routes_["/api/version"].door = &door;
  const ApiError fixed = {
      .status = 403,
      .message =
          "clients change no models of this server: it serves those that it was started with",
      .code = "models_fixed"};
  AddRefusal("DELETE", "/api/delete", door, fixed);
  for (const char* path : {"/api/create", "/api/copy", "/api/push", "/api/blobs/"}) {
    AddRefusal("POST", path, door, fixed);
  }
}

// Has a model fetched, and told of to the client while that lasts, if it may be.
void Server::AnswerPull(const HttpRequest& request, const HttpExchange& exchange) {
  const Door& door = OllamaChatDoor();
  const Result<ApiRequest> asked = ReadOllamaModel(request.body, models_.spec(0).options.defaults);
  if (!asked.ok()) return exchange.Reply(ErrorReply(Refusal(asked.error()), door));
  if (models_.Find(asked->model) != ModelRegistry::kNone) {
    return exchange.Reply(OllamaPulled(asked->stream));
  }
  if (!puller_.may_pull()) return exchange.Reply(ErrorReply(PullsForbidden(asked->model), door));
  if (!puller_.Begin(
          asked->model,
          std::make_shared<PullReply>(asked->model, asked->stream, exchange)->Listener())) {
    exchange.Reply(ErrorReply(
        {.status = 503,
         .message = "another model is being fetched for a client; try again when it is there",
         .type = "server_error",
         .code = "pull_under_way",
         .retry_after = 10},
        door));
  }
}

Status Server::FetchAndServe(const std::string& name, const PullHooks& hooks) {
  FT_ASSIGN_OR_RETURN(ModelSpec spec, options_.fetch(name, hooks));
  FitToCallers(options_, responses_, &spec);
  return models_.Add(std::move(spec));
}

// What llama.cpp's clients ask of them, and what it has that this server has not.
void Server::AddModelRoutes() {
  AddModelSwitch("/models/load", [this](ModelRegistry::Index model) { models_.Preload(model); });
  AddModelSwitch("/models/unload", [this](ModelRegistry::Index model) {
    models_.KeepFor(model, ModelRegistry::Duration::zero());
  });
  const bool reranks = models_.spec(0).options.reranks;
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"}) {
    if (reranks) {
      AddDoor(RerankDoor(), path);
      continue;
    }
    AddRefusal("POST", path, LlamaCppDoor(),
               {.status = 501,
                .message = "This server does not support reranking. Start it with `--reranking`, "
                           "and a model that was trained for it",
                .code = "no_rerank"});
  }
  AddSlotActions();
}

// llama.cpp's: the text of a slot is saved, restored or forgotten.
void Server::AddSlotActions() {
  static constexpr std::string_view kPath = "/slots/";
  if (models_.spec(0).options.slot_folder.empty()) {
    return AddRefusal("POST", std::string(kPath), LlamaCppDoor(),
                      {.status = 501,
                       .message = "This server does not support slots action. Start it with "
                                  "`--slot-save-path`",
                       .code = "no_slot_action"});
  }
  routes_[std::string(kPath)] = {
      .method = "POST",
      .door = &LlamaCppDoor(),
      .answer = [this](const HeldRequest& request, const HttpExchange& exchange) {
        const Door& door = LlamaCppDoor();
        const HttpHead& head = request->head;
        const Result<SlotAction> action =
            ReadSlotAction(std::string_view(head.path).substr(kPath.size()),
                           head.QueryValue("action"), request->body);
        if (!action.ok()) return exchange.Reply(ErrorReply(Refusal(action.error()), door));
        WithModel(
            models_.Resolve(ModelNamed(request->body)), door, request, exchange,
            [&door, action = *action, request, exchange](const ModelRegistry::Lease& service) {
              exchange.Reply(ReplyOf(ActOnSlot(*service, request->head, action), door));
            });
      }};
}

HttpReply Server::Version(const HttpRequest&) {
  return JsonReply({{"version", kOllamaVersion}, {"foretoken", options_.version}});
}

}  // namespace foretoken::server
