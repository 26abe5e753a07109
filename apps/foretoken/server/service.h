#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "apps/foretoken/server/access/api_keys.h"
#include "apps/foretoken/server/access/client_places.h"
#include "apps/foretoken/server/api/api_json.h"
#include "apps/foretoken/server/api/api_request.h"
#include "apps/foretoken/server/api/door.h"
#include "apps/foretoken/server/api/response_store.h"
#include "apps/foretoken/server/engine/engine_thread.h"
#include "apps/foretoken/server/slots/slot_keeper.h"

namespace foretoken::server {

struct ServiceOptions {
  ApiDefaults defaults;
  std::shared_ptr<ResponseStore> responses;  ///< The store of responses of all models.
  std::string slot_folder;                   ///< Where slots are saved; empty: they are not.
  bool reranks = false;                  ///< The model says yes or no to documents (RerankDoor).
  bool random_seed = true;               ///< For requests without one; else the default seed.
  bool lossy = false;                    ///< EngineOptions::lossy: receipts are then refused.
  std::optional<int> max_prompt_tokens;  ///< None: what the context holds.
  /// Sequences of one client under way, where its key says nothing; none: its share of the places.
  std::optional<int> client_limit;
  bool clients_are_one = false;               ///< Only one person calls, who may have all places.
  std::int64_t max_request_tokens = 1 << 18;  ///< Prompts and outputs of all its choices.
  double request_seconds = 600;
  double stall_seconds = 30;  ///< Without progress for so long the engine counts as stuck.
  /// A stream's events of less than this apart go out together.
  std::chrono::milliseconds event_interval{5};
};

/// How API requests ended.
enum class RequestOutcome {
  kStop,
  kLength,
  kClientGone,
  kTimeout,
  kShutdown,
  kInvalid,      ///< 4xx: the request was at fault.
  kBusy,         ///< 429
  kUnavailable,  ///< 503: loading or shutting down.
  kFailed,       ///< 500: the model's numbers are not finite.
};
inline constexpr int kRequestOutcomes = 9;
std::string_view RequestOutcomeName(RequestOutcome outcome);

/// How many requests ended how. Thread-safe.
class OutcomeCounts {
 public:
  void Add(RequestOutcome outcome) { ++counts_[static_cast<std::size_t>(outcome)]; }
  std::int64_t of(RequestOutcome outcome) const {
    return counts_[static_cast<std::size_t>(outcome)];
  }

 private:
  std::array<std::atomic<std::int64_t>, kRequestOutcomes> counts_{};
};

/// A model that a server can serve.
struct ModelSpec {
  std::string id;                    ///< As clients and replies call it.
  std::vector<std::string> aliases;  ///< What clients may call it besides.
  ServiceOptions options;            ///< For the requests for it.
  ModelSource source;                ///< Its files.
  std::optional<int> context;        ///< Tokens of a sequence at most; none: all that it can have.
  CoreSet cores;                     ///< The cores that it computes on.
  std::uint64_t bytes = 0;           ///< The size of its files: about what its weights take.
  ModelLoader load;
};

/// Who sends a request.
struct Caller {
  std::string client;  ///< Whose sequences are counted together: a key's name, an address.
  std::shared_ptr<const ApiKey> key;  ///< Null where no keys are asked for.
};

/// A request that the engine has taken, with all that is needed to reply.
struct Admitted {
  ApiRequest request;
  ReplyHead head;
  std::vector<std::string> echoed;  ///< Prompts as text, where they are wanted back.
  ChatReading reading;              ///< How a chat's answers are read.
  std::shared_ptr<LiveRequest> live;
  std::chrono::steady_clock::time_point deadline;
};

/// What the API does with one model, apart from HTTP, from when it begins to load until it is
/// unloaded. Thread-safe.
class Service {
 public:
  /// Begins to load. All of these outlive the service.
  Service(const ModelSpec& spec, OutcomeCounts* outcomes, CoreTurns* turns)
      : spec_(spec), outcomes_(outcomes), engine_(spec.load, CoreTurn(turns, spec.cores)) {}

  // Once the model is loaded.

  /// Reads the body of a request; or the error to answer with.
  std::variant<ApiRequest, ApiError> Read(const Door& door, const Caller& caller,
                                          const std::string& body);
  /// Checks and submits a request that came at `arrived`; or the error to answer with.
  std::variant<Admitted, ApiError> Admit(const Door& door, const Caller& caller, ApiRequest request,
                                         std::chrono::steady_clock::time_point arrived);

  /// How many sequences one client may have under way, unless its key says otherwise: half of all
  /// places where there is no limit.
  int ClientShare() const;
  const ServedModel& model() const { return engine_.model(); }

  void Count(RequestOutcome outcome) { outcomes_->Add(outcome); }

  /// Whose texts can be saved; null where that is not wanted.
  SlotKeeper* slots() const;

  EngineThread& engine() { return engine_; }
  const EngineThread& engine() const { return engine_; }
  const std::string& id() const { return spec_.id; }
  const ServiceOptions& options() const { return spec_.options; }

 private:
  ApiError Invalid(ApiError error);
  std::optional<ApiError> MakeRequests(const Door& door, const Caller& caller,
                                       std::vector<Request>* requests, Admitted* admitted);
  LiveRequest::Output NotingTexts(const Caller& caller, const ApiRequest& api,
                                  std::span<const Request> requests) const;
  int LimitOf(const Caller& caller) const;
  int AtOnce(const ApiRequest& request, int limit) const;
  std::uint64_t Random();
  int RetryAfterSeconds();
  ApiError Busy(std::string message, std::string code);

  const ModelSpec& spec_;
  OutcomeCounts* const outcomes_;
  const std::shared_ptr<ClientPlaces> places_ = std::make_shared<ClientPlaces>();
  std::mutex random_mutex_;
  std::mt19937_64 random_{std::random_device()()};
  mutable std::once_flag slots_made_;
  mutable std::unique_ptr<SlotKeeper> slots_;  // Made when the model is loaded and it is asked for.
  EngineThread engine_;                        // Last: its thread begins at once.
};

/// The modes that requests may ask for.
std::vector<Mode> OfferedModes(const Engine& engine);

/// How a request is answered for which there is no memory.
ApiError MemoryError();
/// How a request that was aborted is answered.
ApiError AbortError(AbortReason reason, double request_seconds);
/// What a request is answered with whose grammar, the field `field`, could not be followed further.
ApiError GrammarError(const std::string& field);
/// The error that the model called `model` computed what is not finite.
ApiError NotFiniteError(std::string_view model);

}  // namespace foretoken::server
