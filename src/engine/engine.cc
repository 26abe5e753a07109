#include "engine/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "draft/ngram_drafter.h"
#include "engine/engine_impl.h"
#include "engine/plan_rules.h"

namespace foretoken {
namespace {

constexpr int kMaxStopStrings = 16;

Status CheckRange(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return InvalidInput(fmt::format("{} must be from {} to {}, not {}", name, low, high, value));
}

Status ValidateOptions(const EngineOptions& options) {
  FT_RETURN_IF_ERROR(CheckRange("the largest lookahead", options.max_lookahead, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(CheckRange("the largest proposal", options.max_nodes, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(
      CheckRange("the largest cache budget", options.max_cache_budget, 1, kMaxCacheBudget));
  FT_RETURN_IF_ERROR(CheckRange("the batch size", options.max_batch, 1, 256));
  FT_RETURN_IF_ERROR(CheckRange("the prefill chunk", options.prefill_chunk, 1, 8192));
  FT_RETURN_IF_ERROR(CheckRange("the context", options.max_context, 2, 1 << 24));
  if (BlocksFor(options.kv_tokens) < BlocksFor(options.max_context)) {
    return InvalidInput(fmt::format("{} KV slots cannot hold one sequence of {} tokens",
                                    options.kv_tokens, options.max_context));
  }
  return {};
}

}  // namespace

EngineOptions CompleteOptions(EngineOptions options, const ModelConfig& target) {
  options.plan = CompletePlan(options.plan);
  if (options.max_lookahead == 0) options.max_lookahead = options.plan.lookahead;
  if (options.max_nodes == 0) {
    options.max_nodes =
        std::max({options.plan.nodes(), options.plan.RetrievedNodes(), options.max_lookahead});
    if (options.plan.fallback == Fallback::kRetrieval) {  // Also of requests with mode ssd.
      options.max_nodes = std::max(options.max_nodes, kMaxAutoSpeculationLength - 1);
    }
  }
  if (options.max_cache_budget == 0) {
    // A shape counts the nodes of a chain; in a tree there are as many more branches as nodes.
    const int budget =
        std::max(options.plan.primary.budget(), options.plan.after_fallback.budget());
    const int nodes = options.plan.nodes() + 1;
    options.max_cache_budget =
        std::min(budget * std::max(1, nodes / (options.plan.lookahead + 1)), kMaxCacheBudget);
  }
  if (options.max_context == 0) options.max_context = target.max_positions;
  options.max_context = std::min(options.max_context, target.max_positions);
  if (options.kv_tokens == 0) {
    options.kv_tokens = BlocksFor(options.max_context + 1) * kBlockSize * options.max_batch;
  }
  return options;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options, Model* target, Device* device,
                                               const Tokenizer* tokenizer, Proposers proposers,
                                               const MeasuredTimes& times) {
  options = CompleteOptions(options, target->config());
  FT_RETURN_IF_ERROR(ValidateOptions(options));
  auto impl =
      std::make_unique<Impl>(options, times, target, device, tokenizer, std::move(proposers));
  FT_RETURN_IF_ERROR(CheckPlan(options.plan, impl->bounds()));
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Status Engine::Validate(const Request& request) const { return impl_->Validate(request); }
Result<SequenceId> Engine::Submit(Request request) { return impl_->Submit(std::move(request)); }
Status Engine::ChangePlan(SequenceId sequence, const PlanOptions& plan) {
  return impl_->ChangePlan(sequence, plan);
}
void Engine::Cancel(SequenceId sequence) { impl_->Cancel(sequence); }
bool Engine::Step() { return impl_->Step(); }
const EngineOptions& Engine::options() const { return impl_->options(); }
const MeasuredTimes& Engine::times() const { return impl_->times(); }
bool Engine::Offers(Mode mode) const { return impl_->Offers(mode); }
const EngineStats& Engine::stats() const { return impl_->stats(); }
std::optional<PlannerReport> Engine::planner_report() const { return impl_->planner_report(); }
void Engine::ResetStats() { impl_->ResetStats(); }
KvUsage Engine::kv_usage() const { return impl_->kv_usage(); }
int Engine::running() const { return impl_->running(); }
int Engine::waiting() const { return impl_->waiting(); }
Status Engine::CheckIdle() const { return impl_->CheckIdle(); }
void Engine::ForcePreemption() { impl_->ForcePreemption(); }

Engine::Impl::Impl(EngineOptions options, const MeasuredTimes& times, Model* target, Device* device,
                   const Tokenizer* tokenizer, Proposers proposers)
    : options_(options),
      times_(times),
      target_(target),
      device_(device),
      tokenizer_(tokenizer),
      proposers_(std::move(proposers)),
      speculator_(proposers_.speculator.get()),
      random_(target->config().vocabulary),
      eos_(target->config().eos),
      scheduler_(BlocksFor(options_.kv_tokens), options_.prefix_cache, options_.max_batch),
      kv_(target->backend().AllocateKv(target->KvShapeFor(BlocksFor(options_.kv_tokens)))),
      sampler_(&target->backend(), target->config().vocabulary) {
  const auto most = static_cast<std::size_t>(options_.max_batch);
  pass_.reserve(most);
  contexts_.reserve(most);
  batch_.block_tables.reserve(most);
  if (!times_.row_times.rows().empty()) row_price_.emplace(times_.row_times);
  if (proposers_.of(Mode::kNgram) == nullptr) {
    proposers_.of(Mode::kNgram) = std::make_unique<NgramDrafter>();
  }
  if (options_.planner.has_value()) {
    planner_ = std::make_unique<OnlinePlanner>(times_.costs, *options_.planner);
  }
  for (int mode = 0; mode < kModes; ++mode) {
    if (Offers(static_cast<Mode>(mode))) offered_.push_back(static_cast<Mode>(mode));
  }
  bounds_ = {.offered = offered_,
             .max_lookahead = options_.max_lookahead,
             .max_nodes = options_.max_nodes,
             .max_cache_budget = options_.max_cache_budget,
             .knows_row_times = times_.knee_rows > 0 && row_price_.has_value()};
  if (tokenizer_ != nullptr) {
    for (const Token token : tokenizer_->eos()) {
      if (std::find(eos_.begin(), eos_.end(), token) == eos_.end()) eos_.push_back(token);
    }
  }
}

Status Engine::Impl::Validate(const Request& request) const {
  const int vocabulary = target_->config().vocabulary;
  if (request.prompt.empty())
    return InvalidInput("the prompt is empty: give at least one token", "prompt");
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i] < 0 || request.prompt[i] >= vocabulary) {
      return InvalidInput(fmt::format("prompt token {} is {}, outside the vocabulary of {}", i,
                                      request.prompt[i], vocabulary),
                          "prompt");
    }
  }
  if (static_cast<std::int64_t>(request.prompt.size()) >= options_.max_context) {
    return InvalidInput(
        fmt::format("the prompt has {} tokens, but the context holds {} and needs room for at "
                    "least one more: shorten the prompt",
                    request.prompt.size(), options_.max_context),
        "prompt");
  }
  if (request.stop.max_tokens < 1) {
    return InvalidInput(
        fmt::format("max tokens must be at least 1, not {}", request.stop.max_tokens),
        "max_tokens");
  }
  if (!request.stop.stop_strings.empty() && tokenizer_ == nullptr) {
    return InvalidInput("stop strings need a tokenizer, and this model has none", "stop_strings");
  }
  if (request.stop.stop_strings.size() > kMaxStopStrings) {
    return InvalidInput(fmt::format("{} stop strings were given; at most {} are allowed",
                                    request.stop.stop_strings.size(), kMaxStopStrings),
                        "stop_strings");
  }
  for (const std::string& stop : request.stop.stop_strings) {
    if (stop.empty()) {
      return InvalidInput("a stop string is empty: give at least one character", "stop_strings");
    }
  }
  if (request.sampling.constraint != nullptr && request.stop.ignore_eos) {
    return InvalidInput(
        "ignoring end of sequence does not go with a grammar, which says where the text ends",
        "ignore_eos");
  }
  FT_RETURN_IF_ERROR(PlanOf(request.plan));
  return ValidateSamplingParams(request.sampling, vocabulary);
}

Result<SpeculationPlan> Engine::Impl::PlanOf(const std::optional<PlanOptions>& wanted) const {
  if (!wanted.has_value()) return options_.plan;  // Has been checked.
  FT_ASSIGN_OR_RETURN(const SpeculationPlan plan, ApplyOptions(*wanted, options_.plan));
  FT_RETURN_IF_ERROR(CheckPlan(plan, bounds_));
  return plan;
}

bool Engine::Impl::Offers(Mode mode) const {
  if (mode == Mode::kAr) return true;
  if (mode == Mode::kSsd) return speculator_ != nullptr;
  if (mode == Mode::kAuto) return planner_ != nullptr;
  return proposers_.drafters[static_cast<std::size_t>(mode)] != nullptr;
}

Result<SequenceId> Engine::Impl::Submit(Request request) {
  FT_CHECK(request.listener != nullptr);
  FT_RETURN_IF_ERROR(Validate(request));
  FT_ASSIGN_OR_RETURN(const SpeculationPlan plan, PlanOf(request.plan));
  if (unfinished_.load() >= options_.max_batch + options_.max_waiting) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("{} requests are waiting already: try again later", options_.max_waiting)};
  }
  const std::lock_guard lock(inbox_mutex_);
  const SequenceId id = next_id_++;
  auto sequence =
      std::make_unique<Sequence>(id, std::move(request), plan, target_->config().vocabulary,
                                 options_.max_context, eos_, tokenizer_);
  if (plan.open()) sequence->estimate.emplace();
  sequence->draws = options_.verification == Verification::kRejection &&
                    sequence->request.sampling.temperature > 0 && !options_.script.has_value();
  sequence->stats.submitted_ns = NowNs();
  submitted_.push_back(std::move(sequence));
  ++unfinished_;
  inbox_full_ = true;
  return id;
}

Status Engine::Impl::ChangePlan(SequenceId sequence, const PlanOptions& plan) {
  FT_ASSIGN_OR_RETURN(const SpeculationPlan complete, PlanOf(plan));
  const std::lock_guard lock(inbox_mutex_);
  changed_plans_.emplace_back(sequence, complete);
  inbox_full_ = true;
  return {};
}

void Engine::Impl::Cancel(SequenceId sequence) {
  const std::lock_guard lock(inbox_mutex_);
  cancelled_.push_back(sequence);
  inbox_full_ = true;
}

void Engine::Impl::TakeInbox() {
  if (!inbox_full_.exchange(false)) return;
  std::vector<SequenceId> cancelled;
  std::vector<std::pair<SequenceId, SpeculationPlan>> changed_plans;
  {
    const std::lock_guard lock(inbox_mutex_);
    for (auto& sequence : submitted_) scheduler_.Enqueue(std::move(sequence));
    submitted_.clear();
    cancelled.swap(cancelled_);
    changed_plans.swap(changed_plans_);
  }
  for (const auto& [id, plan] : changed_plans) {
    if (Sequence* sequence = Find(id)) TakePlan(sequence, plan);
  }
  for (const SequenceId id : cancelled) {
    Sequence* sequence = Find(id);
    if (sequence == nullptr) continue;
    sequence->finish = FinishReason::kCancelled;
    Retire(sequence);
  }
}

Sequence* Engine::Impl::Find(SequenceId id) const {
  for (const auto& sequence : scheduler_.running()) {
    if (sequence->id == id) return sequence.get();
  }
  for (const auto& sequence : scheduler_.waiting()) {
    if (sequence->id == id) return sequence.get();
  }
  return nullptr;
}

void Engine::Impl::Retire(Sequence* sequence) {
  const auto removed = scheduler_.Remove(sequence);
  EndSpeculation(removed.get());
  removed->stats.output_tokens = removed->output_tokens();
  removed->stats.finished_ns = NowNs();
  --unfinished_;
  Learn(*removed);
  removed->request.listener->OnFinish(removed->id, *removed->finish, removed->stats);
}

void Engine::Impl::Learn(const Sequence& sequence) {
  const Request& request = sequence.request;
  if (request.datastore == nullptr || !request.learn || sequence.output_tokens() == 0) return;
  if (sequence.finish == FinishReason::kCancelled) return;
  request.datastore->LearnOutput(sequence.tokens, sequence.prompt_tokens);
}

void Engine::Impl::EndSpeculation(Sequence* sequence) {
  if (!sequence->speculated) return;
  sequence->speculated = false;
  for (const auto& drafter : proposers_.drafters) {
    if (drafter != nullptr) drafter->Forget(sequence->id);
  }
  retrieval_.Forget(sequence->id);
  if (sequence->opened) speculator_->Close(sequence->id);
  sequence->opened = false;
  sequence->awaits_jit = false;
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
  for (Sequence* sequence : admitted_) {
    if (sequence->plan.open()) MakeFirstPlan(sequence);
  }
}

void Engine::Impl::FollowPlan(Sequence* sequence) {
  const bool wanted = sequence->plan.mode == Mode::kSsd;
  if (sequence->opened && !wanted) EndSpeculation(sequence);
  sequence->speculated = sequence->speculated || sequence->plan.mode != Mode::kAr;
  if (sequence->opened || !wanted) return;
  sequence->opened = true;
  speculator_->Open(Describe(*sequence));
}

LiveSequence Engine::Impl::Describe(const Sequence& sequence) const {
  const ConstraintCursor* constraint = sequence.history.constraint();
  return {.sequence = sequence.id,
          .tokens = sequence.tokens,
          .prompt_tokens = sequence.prompt_tokens,
          .sampling = &sequence.request.sampling,
          .plan = &sequence.plan,
          .draws = sequence.draws,
          .stop_tokens = sequence.stop_tokens,
          .drops_space = constraint != nullptr && constraint->drops_space()};
}

void Engine::Impl::HealSpeculator() {
  if (!speculator_->NeedsHealing()) return;
  std::vector<LiveSequence> live;
  for (const auto& sequence : scheduler_.running()) {
    if (sequence->opened) live.push_back(Describe(*sequence));
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
