#include "engine/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/engine_impl.h"

namespace foretoken {
namespace {

constexpr int kMaxStopStrings = 16;

EngineOptions Complete(EngineOptions options, const ModelConfig& config) {
  if (options.max_context == 0) options.max_context = config.max_positions;
  options.max_context = std::min(options.max_context, config.max_positions);
  if (options.kv_tokens == 0) {
    options.kv_tokens = BlocksFor(options.max_context + 1) * kBlockSize * options.max_batch;
  }
  return options;
}

Status ValidateOptions(const EngineOptions& options) {
  const auto range = [](const char* name, std::int64_t value, std::int64_t low,
                        std::int64_t high) -> Status {
    if (value >= low && value <= high) return {};
    return InvalidInput(fmt::format("{} must be from {} to {}, not {}", name, low, high, value));
  };
  FT_RETURN_IF_ERROR(range("lookahead", options.lookahead, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(range("fan-out", options.fanout, 1, kMaxFanout));
  FT_RETURN_IF_ERROR(range("the batch size", options.max_batch, 1, 256));
  FT_RETURN_IF_ERROR(range("the prefill chunk", options.prefill_chunk, 1, 8192));
  FT_RETURN_IF_ERROR(range("the context", options.max_context, 2, 1 << 24));
  if (BlocksFor(options.kv_tokens) < BlocksFor(options.max_context)) {
    return InvalidInput(fmt::format("{} KV slots cannot hold one sequence of {} tokens",
                                    options.kv_tokens, options.max_context));
  }
  return {};
}

}  // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options, LlamaModel* target,
                                               ThreadPool* pool, const Tokenizer* tokenizer,
                                               std::unique_ptr<Drafter> drafter,
                                               std::unique_ptr<SpeculatorClient> speculator) {
  FT_CHECK(drafter == nullptr || speculator == nullptr, "one kind of speculation per engine");
  options = Complete(options, target->config());
  FT_RETURN_IF_ERROR(ValidateOptions(options));
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(
      options, target, pool, tokenizer, std::move(drafter), std::move(speculator))));
}

Result<SequenceId> Engine::Submit(Request request) { return impl_->Submit(std::move(request)); }
void Engine::Cancel(SequenceId sequence) { impl_->Cancel(sequence); }
bool Engine::Step() { return impl_->Step(); }
const EngineOptions& Engine::options() const { return impl_->options(); }
const EngineStats& Engine::stats() const { return impl_->stats(); }
void Engine::ResetStats() { impl_->ResetStats(); }
KvUsage Engine::kv_usage() const { return impl_->kv_usage(); }
Status Engine::CheckIdle() const { return impl_->CheckIdle(); }
void Engine::ForcePreemption() { impl_->ForcePreemption(); }

Engine::Impl::Impl(EngineOptions options, LlamaModel* target, ThreadPool* pool,
                   const Tokenizer* tokenizer, std::unique_ptr<Drafter> drafter,
                   std::unique_ptr<SpeculatorClient> speculator)
    : options_(options),
      target_(target),
      pool_(pool),
      tokenizer_(tokenizer),
      drafter_(std::move(drafter)),
      speculator_(std::move(speculator)),
      eos_(target->config().eos),
      scheduler_(BlocksFor(options_.kv_tokens), options_.prefix_cache, options_.max_batch),
      kv_(target->backend().AllocateKv(target->KvShapeFor(BlocksFor(options_.kv_tokens)))),
      sampler_(&target->backend(), target->config().vocabulary) {
  if (tokenizer_ != nullptr) {
    for (const Token token : tokenizer_->eos()) {
      if (std::find(eos_.begin(), eos_.end(), token) == eos_.end()) eos_.push_back(token);
    }
  }
}

Status Engine::Impl::Validate(const Request& request) const {
  const int vocabulary = target_->config().vocabulary;
  if (request.prompt.empty()) return InvalidInput("the prompt is empty: give at least one token");
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i] < 0 || request.prompt[i] >= vocabulary) {
      return InvalidInput(fmt::format("prompt token {} is {}, outside the vocabulary of {}", i,
                                      request.prompt[i], vocabulary));
    }
  }
  if (static_cast<std::int64_t>(request.prompt.size()) >= options_.max_context) {
    return InvalidInput(
        fmt::format("the prompt has {} tokens, but the context holds {} and needs room for at "
                    "least one more: shorten the prompt",
                    request.prompt.size(), options_.max_context));
  }
  if (request.stop.max_tokens < 1) {
    return InvalidInput(
        fmt::format("max tokens must be at least 1, not {}", request.stop.max_tokens));
  }
  if (!request.stop.stop_strings.empty() && tokenizer_ == nullptr) {
    return InvalidInput("stop strings need a tokenizer, and this model has none");
  }
  if (request.stop.stop_strings.size() > kMaxStopStrings) {
    return InvalidInput(fmt::format("{} stop strings were given; at most {} are allowed",
                                    request.stop.stop_strings.size(), kMaxStopStrings));
  }
  for (const std::string& stop : request.stop.stop_strings) {
    if (stop.empty()) return InvalidInput("a stop string is empty: give at least one character");
  }
  return ValidateSamplingParams(request.sampling, vocabulary);
}

Result<SequenceId> Engine::Impl::Submit(Request request) {
  FT_CHECK(request.listener != nullptr);
  FT_RETURN_IF_ERROR(Validate(request));
  if (unfinished_.load() >= options_.max_batch + options_.max_waiting) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("{} requests are waiting already: try again later", options_.max_waiting)};
  }
  const std::lock_guard lock(inbox_mutex_);
  const SequenceId id = next_id_++;
  auto sequence = std::make_unique<Sequence>(id, std::move(request), target_->config().vocabulary,
                                             options_.max_context, eos_, tokenizer_);
  sequence->stats.submitted_ns = NowNs();
  submitted_.push_back(std::move(sequence));
  ++unfinished_;
  inbox_full_ = true;
  return id;
}

void Engine::Impl::Cancel(SequenceId sequence) {
  const std::lock_guard lock(inbox_mutex_);
  cancelled_.push_back(sequence);
  inbox_full_ = true;
}

void Engine::Impl::TakeInbox() {
  if (!inbox_full_.exchange(false)) return;
  std::vector<SequenceId> cancelled;
  {
    const std::lock_guard lock(inbox_mutex_);
    for (auto& sequence : submitted_) scheduler_.Enqueue(std::move(sequence));
    submitted_.clear();
    cancelled.swap(cancelled_);
  }
  for (const SequenceId id : cancelled) {
    const auto cancel = [&](const auto& sequences) -> bool {
      for (const auto& sequence : sequences) {
        if (sequence->id != id) continue;
        sequence->finish = FinishReason::kCancelled;
        Retire(sequence.get());
        return true;
      }
      return false;
    };
    if (!cancel(scheduler_.running())) cancel(scheduler_.waiting());
  }
}

void Engine::Impl::Retire(Sequence* sequence) {
  const auto removed = scheduler_.Remove(sequence);
  EndSpeculation(removed.get());
  removed->stats.output_tokens = removed->output_tokens();
  removed->stats.finished_ns = NowNs();
  --unfinished_;
  removed->request.listener->OnFinish(removed->id, *removed->finish, removed->stats);
}

void Engine::Impl::EndSpeculation(Sequence* sequence) {
  if (!sequence->speculated) return;
  sequence->speculated = false;
  if (drafter_ != nullptr) drafter_->Forget(sequence->id);
  if (speculator_ != nullptr) speculator_->Close(sequence->id);
}

void Engine::Impl::EndSpeculationOfPreempted() {
  // A waiting sequence holds no KV, here or at the draft; it starts afresh when it runs again.
  for (const auto& sequence : scheduler_.waiting()) EndSpeculation(sequence.get());
}

void Engine::Impl::ForcePreemption() {
  scheduler_.PreemptYoungest();
  EndSpeculationOfPreempted();
}

void Engine::Impl::AdmitWaiting() {
  if (scheduler_.waiting().empty()) return;
  admitted_.clear();
  scheduler_.Admit(&admitted_);
  if (speculator_ == nullptr) return;
  for (Sequence* sequence : admitted_) {
    sequence->speculated = true;
    speculator_->Open(Describe(*sequence));
  }
}

LiveSequence Engine::Impl::Describe(const Sequence& sequence) const {
  return {.sequence = sequence.id,
          .tokens = sequence.tokens,
          .prompt_tokens = sequence.prompt_tokens,
          .sampling = &sequence.request.sampling,
          .stop_tokens = sequence.stop_tokens};
}

void Engine::Impl::HealSpeculator() {
  if (speculator_ == nullptr || !speculator_->NeedsHealing()) return;
  std::vector<LiveSequence> live;
  for (const auto& sequence : scheduler_.running()) {
    if (sequence->speculated) live.push_back(Describe(*sequence));
  }
  speculator_->Heal(live);
}

Status Engine::Impl::CheckIdle() const {
  if (unfinished_.load() != 0) {
    return Error{ErrorCode::kInternal,
                 fmt::format("{} requests are unfinished: not idle", unfinished_.load())};
  }
  const KvUsage usage = kv_usage();
  if (usage.used != 0 || usage.free + usage.cached != usage.total) {
    return Error{ErrorCode::kInternal,
                 fmt::format("KV blocks do not add up when idle: {} free + {} cached + {} used of "
                             "{}",
                             usage.free, usage.cached, usage.used, usage.total)};
  }
  return scheduler_.kv().CheckIntegrity();
}

}  // namespace foretoken
