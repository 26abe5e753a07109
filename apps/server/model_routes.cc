// What clients ask of models themselves, and how long they stay loaded: parts of Server.

#include <chrono>
#include <ctime>
#include <utility>

#include "server/api/request_fields.h"
#include "server/doors/llama_cpp.h"
#include "server/doors/ollama.h"
#include "server/doors/ollama_models.h"
#include "server/queries.h"
#include "server/replies.h"
#include "server/server.h"
#include "server/slots/slot_requests.h"

namespace foretoken::server {
namespace {

// Whose API is kept to: clients refuse servers that call themselves older than they need.
constexpr char kOllamaVersion[] = "0.12.6";

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
  add("POST", "/api/pull", [this, &door](const HttpRequest& request) {
    const auto pulled = OllamaPull(models_, request);
    const auto* error = std::get_if<ApiError>(&pulled);
    return error != nullptr ? ErrorReply(*error, door) : std::get<HttpReply>(pulled);
  });
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

// What llama.cpp's clients ask of them, and what it has that this server has not.
void Server::AddModelRoutes() {
  AddModelSwitch("/models/load", [this](ModelRegistry::Index model) { models_.Preload(model); });
  AddModelSwitch("/models/unload", [this](ModelRegistry::Index model) {
    models_.KeepFor(model, ModelRegistry::Duration::zero());
  });
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"}) {
    AddRefusal(
        "POST", path, LlamaCppDoor(),
        {.status = 501,
         .message = "this server does not support reranking: no model that it can read has a "
                    "head that scores documents",
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
        WithModel(models_.Resolve(ModelNamed(request->body)), door, request, exchange,
                  [&door, action = *action, request,
                   exchange](const ModelRegistry::Lease& service) {
                    exchange.Reply(ReplyOf(ActOnSlot(*service, request->head, action), door));
                  });
      }};
}

HttpReply Server::Version(const HttpRequest&) {
  return JsonReply({{"version", kOllamaVersion}, {"foretoken", options_.version}});
}

}  // namespace foretoken::server
