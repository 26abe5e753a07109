#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "apps/foretoken/server/engine/core_turns.h"
#include "apps/foretoken/server/service.h"
#include "base/result.h"

namespace foretoken::server {

/// How many models are kept loaded. One always may be, whatever it takes.
struct RegistryLimits {
  std::optional<int> loaded;  ///< None: any number.
  /// Bytes of all that are loaded; none: what memory the system has left.
  std::optional<std::uint64_t> bytes;
  /// A model that nobody has used for so long is unloaded; 0: never for that.
  std::chrono::steady_clock::duration idle{0};
  /// Where there is one model only it still answers by its names alone, since others may be added.
  bool grows = false;
};

enum class ModelState { kUnloaded, kLoading, kLoaded };

/// What is known of a model.
struct ModelStatus {
  ModelState state = ModelState::kUnloaded;
  std::optional<int> context;  ///< Tokens of a sequence; none: it was never loaded.
  std::int64_t loads = 0;      ///< How often it was loaded.
  std::uint64_t bytes = 0;     ///< About what it takes, or would take, loaded.
  /// When it is unloaded if nobody uses it until then; none: no time is set for that, or it is not
  /// loaded.
  std::optional<std::chrono::steady_clock::time_point> leaves;
  std::string failure;  ///< Why it could not be, where that was tried last; else empty.
};

/// The models of one server. Each is loaded when it is first asked for, one after the other, and
/// unloaded when nobody uses it for long or another needs its place: the one that was asked for
/// the longest ago goes, once its requests have ended. Requests for a model that is not there wait
/// for it, those for another do not. Thread-safe.
class ModelRegistry {
 private:
  struct Slot;
  struct Shelf;

 public:
  /// Which model; the number of its spec.
  using Index = std::size_t;
  /// A loaded model, which stays so while this is kept.
  using Lease = std::shared_ptr<Service>;
  /// A model, or what to answer in its place.
  using Answer = std::variant<Lease, ApiError>;
  using Use = std::function<void(Answer)>;

  /// `specs`: one at least, their names all different.
  ModelRegistry(std::vector<ModelSpec> specs, RegistryLimits limits);
  /// Stops, if nobody has. No lease may be used any more.
  ~ModelRegistry();
  /// Ends all requests; from now on nothing is loaded, unloaded or acquired.
  void Stop();

  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  /// Serves another model from now on, where `grows`. An error where one is called so, or there are
  /// kMostAdded of them.
  static constexpr std::size_t kMostAdded = 256;
  Status Add(ModelSpec spec);
  /// Whether there was one model at the start: it is that of requests that name none.
  bool began_with_one() const { return began_with_ == 1; }
  /// Whether the only model answers by any name.
  bool answers_any_name() const { return size() == 1 && !limits_.grows; }
  const ModelSpec& spec(Index model) const { return specs_[model]; }
  ModelStatus status(Index model) const;
  const OutcomeCounts& outcomes(Index model) const;

  /// The model of that name; kNone where there is none.
  static constexpr Index kNone = ~Index{0};
  Index Find(std::string_view name) const;
  /// The same for a request: where there is one model only, it answers by any name. The error says
  /// which names there are.
  std::variant<Index, ApiError> Resolve(std::string_view name) const;
  /// How a request for a model that is not there is answered.
  ApiError UnknownModel(std::string_view name) const;

  /// Begins to load a model that nobody asked for yet.
  void Preload(Index model);
  /// Unloads a model once nobody has used it for so long (kForEver: no time is long enough), until
  /// it is loaded the next time; none: as RegistryLimits::idle says.
  using Duration = std::chrono::steady_clock::duration;
  static constexpr Duration kForEver = Duration::max();
  void KeepFor(Index model, std::optional<Duration> idle);
  /// Waits until it is loaded, or says why it could not be.
  Result<Lease> AwaitLoaded(Index model);
  /// The model where it is loaded, or the error where it cannot be waited for. Else nothing:
  /// `later`, which returns at once, is then called on the registry's thread.
  std::optional<Answer> Acquire(Index model, Use later);
  /// The model where it is loaded, for a look at it that does not count as its use; else null.
  Lease Peek(Index model) const;

  /// From now on nothing is acquired.
  void Drain();
  bool draining() const;
  /// Ends all requests, those that wait for a model too.
  void AbortAll(AbortReason reason);

 private:
  std::string Names() const;
  void Run();
  Slot* NextWanted();
  Slot* Blocking(const Slot& wanted);
  Slot* Unneeded(std::chrono::steady_clock::time_point now);
  bool HasRoom(const Slot& wanted) const;
  std::optional<std::chrono::steady_clock::time_point> LeavesAt(const Slot& slot) const;
  void Load(Slot* slot, std::unique_lock<std::mutex>* lock);
  void Unload(Slot* slot, std::unique_lock<std::mutex>* lock);
  void WaitForWork(std::unique_lock<std::mutex>* lock);

  // Has room for all that may be added, so that nothing that is there ever moves: it is read
  // without a lock, as far as size() says.
  std::vector<ModelSpec> specs_;
  const std::size_t began_with_;
  std::atomic<std::size_t> size_;
  const RegistryLimits limits_;
  CoreTurns turns_;
  /// Shared with the leases, of which some are only let go of after the registry.
  const std::shared_ptr<Shelf> shelf_;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace foretoken::server
