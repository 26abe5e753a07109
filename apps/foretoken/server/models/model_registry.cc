#include "apps/foretoken/server/models/model_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <tuple>
#include <utility>

#include "apps/foretoken/server/doors/doors.h"
#include "base/check.h"
#include "base/exhaustion.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

using Clock = std::chrono::steady_clock;

// Requests that wait for one model.
constexpr std::size_t kMostWaiting = 1024;

// What the system could give without taking from others; no limit where it does not say.
std::uint64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<std::uint64_t>::max();
}

// The size of the pool that its engine has for keys and values.
std::uint64_t KvBytes(const ServedModel& served) {
  const EngineLimits limits = served.engine->limits();
  return served.model->facts().kv_bytes_per_token * static_cast<std::uint64_t>(limits.context) *
         static_cast<std::uint64_t>(limits.batch);
}

// Why is the operator's: it may name files of the server.
ApiError LoadError(const std::string& model, const Error& error) {
  const bool wants_more = error.code == ErrorCode::kUnavailable;  // Memory, say.
  return {.status = wants_more ? 503 : 500,
          .message = fmt::format(
              "the model '{}' could not be loaded; the server's standard error says why", model),
          .type = "server_error",
          .code = "model_not_loaded",
          .retry_after = wants_more ? 1 : 0};
}

}  // namespace

struct ModelRegistry::Slot {
  const ModelSpec* spec = nullptr;
  OutcomeCounts outcomes;
  ModelStatus status;
  std::unique_ptr<Service> service;  // While it is loaded.
  std::uint64_t bytes = 0;           // About what it takes loaded.
  int users = 0;                     // Leases.
  Clock::time_point last_used;
  std::optional<Duration> keep;  // Unloaded after that without use; none: as all are.
  bool leaving = false;          // To be unloaded when its requests have ended; new ones wait.
  std::int64_t wanted = 0;       // Since which want, as they are counted; 0: it is not.
  std::vector<Use> waiting;      // For it to be loaded.
  std::optional<Error> failure;

  // `status` follows when its memory has come or gone.
  bool loaded() const { return service != nullptr; }
};

// Guarded by `mutex`, but for what never changes: which slots there are, specs, outcomes.
struct ModelRegistry::Shelf {
  std::vector<std::unique_ptr<Slot>> slots;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::int64_t wants = 0;
  bool draining = false;
  bool stop = false;

  void Want(Slot* slot) {
    if (slot->wanted == 0) slot->wanted = ++wants;
    changed.notify_all();
  }

  // With the mutex held, or nobody there yet.
  void PutUp(const ModelSpec& spec) {
    auto slot = std::make_unique<Slot>();
    slot->spec = &spec;
    slot->bytes = spec.bytes;
    slots.push_back(std::move(slot));
  }

  // With the mutex held.
  static Lease Lend(const std::shared_ptr<Shelf>& shelf, Slot* slot, bool as_use) {
    ++slot->users;
    if (as_use) slot->last_used = Clock::now();
    return {slot->service.get(), [shelf, slot, as_use](Service*) {
              const std::lock_guard lock(shelf->mutex);
              --slot->users;
              if (as_use) slot->last_used = Clock::now();
              const bool may_go = slot->leaving || slot->keep.has_value();
              if (slot->users == 0 && may_go) shelf->changed.notify_all();
            }};
  }
};

ModelRegistry::ModelRegistry(std::vector<ModelSpec> specs, RegistryLimits limits)
    : specs_(std::move(specs)),
      began_with_(specs_.size()),
      size_(0),
      limits_(limits),
      shelf_(std::make_shared<Shelf>()) {
  FT_CHECK(!specs_.empty(), "a server has a model");
  const std::size_t most = began_with_ + (limits_.grows ? kMostAdded : 0);
  specs_.reserve(most);
  shelf_->slots.reserve(most);
  for (const ModelSpec& spec : specs_) shelf_->PutUp(spec);
  size_ = began_with_;
  thread_ = std::thread([this] { Run(); });
}

ModelRegistry::~ModelRegistry() {
  Stop();
  for (const auto& slot : shelf_->slots) slot->service.reset();
}

void ModelRegistry::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(shelf_->mutex);
    shelf_->draining = true;
    shelf_->stop = true;
  }
  shelf_->changed.notify_all();
  thread_.join();
  AbortAll(AbortReason::kShutdown);
}

Status ModelRegistry::Add(ModelSpec spec) {
  FT_CHECK(limits_.grows);
  const std::lock_guard lock(shelf_->mutex);
  if (Find(spec.id) != kNone) {
    return Invalid("a model '{}' is served already", spec.id);
  }
  if (specs_.size() == specs_.capacity()) {
    return Invalid("this server has {} models, and more cannot be added to it", specs_.size());
  }
  specs_.push_back(std::move(spec));
  shelf_->PutUp(specs_.back());
  size_.store(specs_.size(), std::memory_order_release);
  return {};
}

ModelStatus ModelRegistry::status(Index model) const {
  const std::lock_guard lock(shelf_->mutex);
  const Slot& slot = *shelf_->slots[model];
  ModelStatus status = slot.status;
  status.bytes = slot.bytes;
  if (slot.loaded()) status.leaves = LeavesAt(slot);
  return status;
}

const OutcomeCounts& ModelRegistry::outcomes(Index model) const {
  return shelf_->slots[model]->outcomes;
}

ModelRegistry::Index ModelRegistry::Find(std::string_view name) const {
  for (const std::string_view called : {name, WithoutTag(name)}) {
    for (Index i = 0; i < size(); ++i) {
      const auto& aliases = specs_[i].aliases;
      if (specs_[i].id == called || std::ranges::find(aliases, called) != aliases.end()) return i;
    }
  }
  return kNone;
}

std::variant<ModelRegistry::Index, ApiError> ModelRegistry::Resolve(std::string_view name) const {
  if (answers_any_name() || (name.empty() && began_with_one())) return Index{0};
  const Index found = Find(name);
  if (found != kNone) return found;
  if (!name.empty()) return UnknownModel(name);
  return ApiError{
      .message = fmt::format("this server has several models: say in 'model' which of {}", Names()),
      .param = "model",
      .code = "model_not_found"};
}

std::string ModelRegistry::Names() const {
  std::vector<std::string_view> names;
  for (Index i = 0; i < size(); ++i) names.push_back(specs_[i].id);
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

ApiError ModelRegistry::UnknownModel(std::string_view name) const {
  return {.status = 404,
          .message = fmt::format("the model '{}' is not served here; {} {}",
                                 Shortened(std::string(name)), Names(), size() == 1 ? "is" : "are"),
          .param = "model",
          .code = "model_not_found"};
}

void ModelRegistry::Preload(Index model) {
  const std::lock_guard lock(shelf_->mutex);
  Slot* slot = shelf_->slots[model].get();
  if (!shelf_->draining && !(slot->loaded() && !slot->leaving)) shelf_->Want(slot);
}

void ModelRegistry::KeepFor(Index model, std::optional<Duration> idle) {
  const std::lock_guard lock(shelf_->mutex);
  Slot* slot = shelf_->slots[model].get();
  if (slot->keep == idle) return;
  slot->keep = idle;
  shelf_->changed.notify_all();
}

Result<ModelRegistry::Lease> ModelRegistry::AwaitLoaded(Index model) {
  std::unique_lock lock(shelf_->mutex);
  Slot* slot = shelf_->slots[model].get();
  shelf_->changed.wait(lock, [slot] { return slot->wanted == 0; });
  while (!slot->loaded()) {  // It may have been unloaded again.
    if (slot->failure.has_value()) return *slot->failure;
    shelf_->Want(slot);
    shelf_->changed.wait(lock, [slot] { return slot->wanted == 0; });
  }
  return Shelf::Lend(shelf_, slot, /*as_use=*/true);
}

std::optional<ModelRegistry::Answer> ModelRegistry::Acquire(Index model, Use later) {
  const std::lock_guard lock(shelf_->mutex);
  Slot* slot = shelf_->slots[model].get();
  if (shelf_->draining) {
    slot->outcomes.Add(RequestOutcome::kUnavailable);
    return AbortError(AbortReason::kShutdown, 0);
  }
  if (slot->loaded() && !slot->leaving) return Shelf::Lend(shelf_, slot, /*as_use=*/true);
  if (slot->waiting.size() >= kMostWaiting) {
    slot->outcomes.Add(RequestOutcome::kBusy);
    return ApiError{
        .status = 429,
        .message = fmt::format("{} requests wait for the model '{}' already; try again later",
                               kMostWaiting, slot->spec->id),
        .type = "rate_limit_error",
        .code = "queue_full",
        .retry_after = 1};
  }
  slot->waiting.push_back(std::move(later));
  shelf_->Want(slot);
  return std::nullopt;
}

ModelRegistry::Lease ModelRegistry::Peek(Index model) const {
  const std::lock_guard lock(shelf_->mutex);
  Slot* slot = shelf_->slots[model].get();
  return slot->loaded() ? Shelf::Lend(shelf_, slot, /*as_use=*/false) : nullptr;
}

void ModelRegistry::Drain() {
  const std::lock_guard lock(shelf_->mutex);
  shelf_->draining = true;
}

bool ModelRegistry::draining() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->draining;
}

void ModelRegistry::AbortAll(AbortReason reason) {
  std::vector<Use> waiting;
  {
    const std::lock_guard lock(shelf_->mutex);
    for (const auto& slot : shelf_->slots) {
      if (slot->service != nullptr) slot->service->engine().AbortAll(reason);
      for (Use& use : slot->waiting) {
        waiting.push_back(std::move(use));
        slot->outcomes.Add(RequestOutcome::kShutdown);
      }
      slot->waiting.clear();
    }
  }
  for (const Use& use : waiting) use(AbortError(reason, 0));
}

void ModelRegistry::Run() {
  std::unique_lock lock(shelf_->mutex);
  while (!shelf_->stop) {
    if (Slot* unneeded = Unneeded(Clock::now())) {
      Unload(unneeded, &lock);
      continue;
    }
    if (Slot* wanted = NextWanted()) {
      Slot* blocking = Blocking(*wanted);
      if (blocking == nullptr) {
        Load(wanted, &lock);
        continue;
      }
      blocking->leaving = true;
      if (blocking->users == 0) continue;
    }
    WaitForWork(&lock);
  }
}

// The model that was asked for first comes first.
ModelRegistry::Slot* ModelRegistry::NextWanted() {
  Slot* next = nullptr;
  for (const auto& slot : shelf_->slots) {
    if (slot->loaded() || slot->wanted == 0) continue;
    if (next == nullptr || slot->wanted < next->wanted) next = slot.get();
  }
  return next;
}

// Which model has to go before this one can be loaded; null where none has.
ModelRegistry::Slot* ModelRegistry::Blocking(const Slot& wanted) {
  if (HasRoom(wanted)) return nullptr;
  Slot* blocking = nullptr;
  // One that is about to go, else one that nobody uses, else the one that was used the longest ago.
  const auto rank = [](const Slot& slot) {
    return std::tuple(!slot.leaving, slot.users > 0, slot.last_used);
  };
  for (const auto& slot : shelf_->slots) {
    if (!slot->loaded()) continue;
    if (blocking == nullptr || rank(*slot) < rank(*blocking)) blocking = slot.get();
  }
  return blocking;
}

bool ModelRegistry::HasRoom(const Slot& wanted) const {
  int loaded = 0;
  std::uint64_t bytes = wanted.bytes;
  for (const auto& slot : shelf_->slots) {
    if (!slot->loaded()) continue;
    ++loaded;
    bytes += slot->bytes;
  }
  if (limits_.loaded && loaded >= *limits_.loaded) return false;
  return limits_.bytes ? bytes <= *limits_.bytes : wanted.bytes <= AvailableMemory();
}

// A model whose place another needs, or which was idle for too long; null where there is none.
ModelRegistry::Slot* ModelRegistry::Unneeded(Clock::time_point now) {
  for (const auto& slot : shelf_->slots) {
    if (!slot->loaded() || slot->users > 0) continue;
    const auto leaves = LeavesAt(*slot);
    if (slot->leaving || (leaves.has_value() && *leaves <= now)) return slot.get();
  }
  return nullptr;
}

// When a model has been idle for too long that nobody uses from now on; none: never.
std::optional<Clock::time_point> ModelRegistry::LeavesAt(const Slot& slot) const {
  const bool ages = limits_.idle != Duration::zero();
  const Duration idle = slot.keep.value_or(ages ? limits_.idle : kForEver);
  if (idle == kForEver) return std::nullopt;
  return (slot.users > 0 ? Clock::now() : slot.last_used) + idle;
}

void ModelRegistry::Load(Slot* slot, std::unique_lock<std::mutex>* lock) {
  slot->status.state = ModelState::kLoading;
  lock->unlock();
  std::unique_ptr<Service> service;
  const Status loaded = OrExhausted([&]() -> Status {
    service = std::make_unique<Service>(*slot->spec, &slot->outcomes, &turns_);
    return service->engine().AwaitLoaded();
  });
  if (!loaded.ok()) service.reset();
  lock->lock();
  slot->wanted = 0;
  slot->failure.reset();
  slot->keep.reset();
  if (loaded.ok()) {
    slot->service = std::move(service);
    slot->status = {.state = ModelState::kLoaded,
                    .context = slot->service->model().engine->limits().context,
                    .loads = slot->status.loads + 1,
                    .failure = {}};
    slot->bytes = slot->spec->bytes + KvBytes(slot->service->model());
    slot->last_used = Clock::now();
  } else {
    slot->failure = loaded.error();
    slot->status.state = ModelState::kUnloaded;
    slot->status.failure = loaded.error().message;
  }
  std::vector<Use> waiting = std::exchange(slot->waiting, {});
  if (!loaded.ok() && !waiting.empty()) {
    fmt::print(stderr, "foretoken: warning: the model '{}' could not be loaded: {}\n",
               slot->spec->id, loaded.error().message);
  }
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (loaded.ok()) {
      answers.emplace_back(Shelf::Lend(shelf_, slot, /*as_use=*/true));
    } else {
      answers.emplace_back(LoadError(slot->spec->id, loaded.error()));
      slot->outcomes.Add(RequestOutcome::kUnavailable);
    }
  }
  lock->unlock();
  shelf_->changed.notify_all();
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i](std::move(answers[i]));
  lock->lock();
}

void ModelRegistry::Unload(Slot* slot, std::unique_lock<std::mutex>* lock) {
  std::unique_ptr<Service> service = std::move(slot->service);
  slot->leaving = false;
  lock->unlock();
  service.reset();
  malloc_trim(0);  // Vocabularies and grammars lie in many small pieces.
  lock->lock();
  slot->status.state = ModelState::kUnloaded;
}

void ModelRegistry::WaitForWork(std::unique_lock<std::mutex>* lock) {
  std::optional<Clock::time_point> until;
  for (const auto& slot : shelf_->slots) {
    // Whoever lets go of one that has a time of its own says so.
    if (!slot->loaded() || (slot->users > 0 && slot->keep.has_value())) continue;
    const auto leaves = LeavesAt(*slot);
    if (leaves.has_value() && (!until.has_value() || *leaves < *until)) until = leaves;
  }
  if (!until.has_value()) return shelf_->changed.wait(*lock);
  shelf_->changed.wait_until(*lock, *until);
}

}  // namespace foretoken::server
