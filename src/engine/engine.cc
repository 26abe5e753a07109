#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/inbox.h"
#include "engine/plan_rules.h"
#include "engine/request_rules.h"
#include "engine/round/auto_planning.h"
#include "engine/round/drafters.h"
#include "engine/round/emitter.h"
#include "engine/round/retrieval_budget.h"
#include "engine/round/round.h"
#include "engine/round/round_timer.h"
#include "engine/round/speculation_ahead.h"
#include "engine/round/target_pass.h"
#include "engine/round/verifier.h"
#include "engine/scheduler.h"

namespace foretoken {
namespace {

// End-of-sequence tokens of the model and of its tokenizer.
std::vector<Token> EndTokens(const Model& target, const Tokenizer* tokenizer) {
  std::vector<Token> end = target.config().eos;
  if (tokenizer == nullptr) return end;
  for (const Token token : tokenizer->eos()) {
    if (std::ranges::find(end, token) == end.end()) end.push_back(token);
  }
  return end;
}

}  // namespace

/// Who is there: requests, admission and the sequences' lives. What happens in a round is the
/// business of its parts (engine/round), in the order of Step.
class Engine::Impl {
 public:
  Impl(const EngineConfig& options, const MeasuredTimes& times, Model* target, Device* device,
       const Tokenizer* tokenizer, Proposers proposers);
  ~Impl();

  Result<std::vector<SequenceId>> Submit(std::vector<Request> requests);
  Status ChangePlan(SequenceId sequence, const PlanOptions& plan);
  void Cancel(SequenceId sequence) { inbox_.Cancel(sequence); }
  bool Step();
  void Attach() {
    device_->Adopt();
    attached_ = true;
  }

  bool Offers(Mode mode) const;
  const PlanBounds& bounds() const { return bounds_; }

  const EngineConfig& options() const { return options_; }
  const MeasuredTimes& times() const { return times_; }
  const Scheduler& scheduler() const { return scheduler_; }
  RoundTimer& timer() { return timer_; }
  std::optional<PlannerReport> planner_report() const {
    return planning_.has_value() ? std::optional(planning_->Report()) : std::nullopt;
  }
  Status CheckIdle() const;
  void ForcePreemption();
  void WhenClosed(std::function<void(const CostModel&, std::int64_t)> told) {
    when_closed_ = std::move(told);
  }

 private:
  const RunningSet& running() const { return scheduler_.running(); }

  // The engine's own where nothing is wanted; an error where this engine cannot follow it.
  Result<SpeculationPlan> PlanOf(const std::optional<PlanOptions>& wanted) const;
  std::unique_ptr<Sequence> NewSequence(SequenceId id, Request request,
                                        const SpeculationPlan& plan) const;
  void TakeInbox();
  void TakePlan(Sequence* sequence, const SpeculationPlan& plan);
  Sequence* Find(SequenceId id) const;
  void AdmitWaiting();

  void Propose();
  void FollowPlan(Sequence* sequence);
  void VerifyPass(Logits logits);
  void TakeNews();
  void EmitPass(Logits logits);
  void LearnFromRound();

  void EndSpeculation(Sequence* sequence);
  void EndSpeculationOfPreempted();
  void Retire(Sequence* sequence);

  const EngineConfig options_;
  const MeasuredTimes times_;
  Device* const device_;
  const Tokenizer* const tokenizer_;
  const std::vector<Token> eos_;
  const int vocabulary_;
  std::vector<Mode> offered_;
  PlanBounds bounds_;
  bool attached_ = false;

  Inbox inbox_;
  Scheduler scheduler_;
  std::vector<Sequence*> admitted_;  // Reused between rounds.

  Round round_;
  RetrievalBudget budget_;
  Drafters drafters_;
  std::optional<SpeculationAhead> ahead_;  // Where there is a speculator.
  std::optional<AutoPlanning> planning_;   // Where plans may be open.
  TargetPass target_pass_;
  Verifier verifier_;
  Emitter emitter_;
  RoundTimer timer_;
  std::function<void(const CostModel&, std::int64_t)> when_closed_;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> CreateEngine(EngineConfig options, Model* target, Device* device,
                                             const Tokenizer* tokenizer, Proposers proposers,
                                             const MeasuredTimes& times) {
  options = CompleteOptions(options, target->config());
  FT_RETURN_IF_ERROR(ValidateOptions(options));
  auto impl = std::make_unique<Engine::Impl>(options, times, target, device, tokenizer,
                                             std::move(proposers));
  FT_RETURN_IF_ERROR(CheckPlan(options.plan, impl->bounds()));
  return std::make_unique<Engine>(std::move(impl));
}

Result<SequenceId> Engine::Submit(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  FT_ASSIGN_OR_RETURN(const std::vector<SequenceId> ids, impl_->Submit(std::move(requests)));
  return ids.front();
}
Result<std::vector<SequenceId>> Engine::SubmitAll(std::vector<Request> requests) {
  return impl_->Submit(std::move(requests));
}
Status Engine::ChangePlan(SequenceId sequence, const PlanOptions& plan) {
  return impl_->ChangePlan(sequence, plan);
}
void Engine::Cancel(SequenceId sequence) { impl_->Cancel(sequence); }
bool Engine::Step() { return impl_->Step(); }
void Engine::Attach() { impl_->Attach(); }
EngineLimits Engine::limits() const {
  const EngineConfig& config = impl_->options();
  return {.context = config.max_context,
          .batch = config.max_batch,
          .queue = config.max_waiting,
          .lookahead = config.max_lookahead,
          .cache_budget = config.max_cache_budget,
          .knee_rows = impl_->times().knee_rows};
}
PlanOptions Engine::plan() const {
  const SpeculationPlan& plan = impl_->options().plan;
  return {.mode = plan.mode,
          .lookahead = plan.lookahead,
          .tree_width = plan.tree_width,
          .fallback = plan.fallback,
          .fanout = Fanout{.rule = plan.fanout,
                           .counts = {plan.primary.at.begin(), plan.primary.at.end()}}};
}
bool Engine::Offers(Mode mode) const { return impl_->Offers(mode); }
const EngineStats& Engine::stats() const { return impl_->timer().stats(); }
void Engine::ResetStats() { impl_->timer().ResetStats(); }
std::optional<PlannerReport> Engine::planner_report() const { return impl_->planner_report(); }
KvUsage Engine::kv_usage() const { return impl_->scheduler().kv().Usage(); }
int Engine::running() const { return static_cast<int>(impl_->scheduler().running().size()); }
int Engine::waiting() const { return static_cast<int>(impl_->scheduler().waiting().size()); }
Status Engine::CheckIdle() const { return impl_->CheckIdle(); }

const EngineConfig& ConfigOf(const Engine& engine) { return engine.impl().options(); }
const MeasuredTimes& TimesOf(const Engine& engine) { return engine.impl().times(); }
void WhenClosed(Engine& engine, std::function<void(const CostModel&, std::int64_t)> told) {
  engine.impl().WhenClosed(std::move(told));
}
void ForcePreemption(Engine& engine) { engine.impl().ForcePreemption(); }

Engine::Impl::Impl(const EngineConfig& options, const MeasuredTimes& times, Model* target,
                   Device* device, const Tokenizer* tokenizer, Proposers proposers)
    : options_(options),
      times_(times),
      device_(device),
      tokenizer_(tokenizer),
      eos_(EndTokens(*target, tokenizer)),
      vocabulary_(target->config().vocabulary),
      inbox_(options.max_batch + options.max_waiting),
      scheduler_(BlocksFor(options.kv_tokens), options.prefix_cache, options.max_batch),
      budget_(times, options.max_nodes),
      drafters_(std::move(proposers.before), vocabulary_, options.max_batch),
      target_pass_(target, BlocksFor(options.kv_tokens), options.max_batch, options.prefill_chunk),
      verifier_(&target->backend(), vocabulary_, options.script),
      emitter_(vocabulary_) {
  round_.pass.reserve(static_cast<std::size_t>(options.max_batch));
  if (proposers.speculator != nullptr) ahead_.emplace(std::move(proposers.speculator));
  if (options.planner.has_value()) planning_.emplace(times.costs, *options.planner);
  for (const Mode mode : kModes) {
    if (Offers(mode)) offered_.push_back(mode);
  }
  bounds_ = {.offered = offered_,
             .max_lookahead = options.max_lookahead,
             .max_nodes = options.max_nodes,
             .max_cache_budget = options.max_cache_budget,
             .knows_row_times = times.knee_rows > 0 && !times.row_times.rows().empty()};
}

Engine::Impl::~Impl() {
  if (!when_closed_ || !planning_.has_value()) return;
  std::int64_t rounds = 0;
  for (const ModeReport& mode : planning_->Report().modes) rounds += mode.rounds;
  when_closed_(planning_->Learned(), rounds);
}

Result<SpeculationPlan> Engine::Impl::PlanOf(const std::optional<PlanOptions>& wanted) const {
  if (!wanted.has_value()) return options_.plan;  // Has been checked.
  FT_ASSIGN_OR_RETURN(const SpeculationPlan plan, ApplyOptions(*wanted, options_.plan));
  FT_RETURN_IF_ERROR(CheckPlan(plan, bounds_));
  return plan;
}

bool Engine::Impl::Offers(Mode mode) const {
  if (mode.planned()) return planning_.has_value();
  if (mode.during()) return ahead_.has_value() && NeedsDraft(mode);
  return !mode.drafts() || drafters_.Has(mode.drafter);
}

Result<std::vector<SequenceId>> Engine::Impl::Submit(std::vector<Request> requests) {
  const RequestLimits limits{.vocabulary = vocabulary_,
                             .max_context = options_.max_context,
                             .has_tokenizer = tokenizer_ != nullptr};
  std::vector<SpeculationPlan> plans;
  for (const Request& request : requests) {
    FT_CHECK(request.listener != nullptr);
    FT_RETURN_IF_ERROR(ValidateRequest(request, limits));
    FT_ASSIGN_OR_RETURN(const SpeculationPlan plan, PlanOf(request.plan));
    plans.push_back(plan);
  }
  FT_ASSIGN_OR_RETURN(const SequenceId first, inbox_.TakePlaces(static_cast<int>(requests.size())));
  std::vector<SequenceId> ids;
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ids.push_back(first + i);
    sequences.push_back(NewSequence(ids[i], std::move(requests[i]), plans[i]));
  }
  inbox_.Submit(std::move(sequences));
  return ids;
}

std::unique_ptr<Sequence> Engine::Impl::NewSequence(SequenceId id, Request request,
                                                    const SpeculationPlan& plan) const {
  auto sequence = std::make_unique<Sequence>(id, std::move(request), plan, vocabulary_,
                                             options_.max_context, eos_, tokenizer_);
  if (plan.open()) sequence->estimate.emplace();
  sequence->draws = options_.verification == Verification::kRejection &&
                    sequence->request.sampling.temperature > 0 && !options_.script.has_value();
  sequence->stats.submitted_ns = NowNs();
  return sequence;
}

Status Engine::Impl::ChangePlan(SequenceId sequence, const PlanOptions& plan) {
  FT_ASSIGN_OR_RETURN(const SpeculationPlan complete, PlanOf(plan));
  inbox_.ChangePlan(sequence, complete);
  return {};
}

void Engine::Impl::TakeInbox() {
  Inbox::Mail mail = inbox_.Take();
  for (auto& sequence : mail.submitted) scheduler_.Enqueue(std::move(sequence));
  for (const auto& [id, plan] : mail.changed_plans) {
    if (Sequence* sequence = Find(id)) TakePlan(sequence, plan);
  }
  for (const SequenceId id : mail.cancelled) {
    Sequence* sequence = Find(id);
    if (sequence == nullptr) continue;
    sequence->finish = FinishReason::kCancelled;
    Retire(sequence);
  }
}

void Engine::Impl::TakePlan(Sequence* sequence, const SpeculationPlan& plan) {
  sequence->plan = plan;
  sequence->estimate.reset();
  if (!plan.open()) return;
  sequence->estimate.emplace();
  planning_->MakeFirstPlan(running(), sequence);
}

Sequence* Engine::Impl::Find(SequenceId id) const {
  const auto has_id = [id](const auto& sequence) { return sequence->id == id; };
  const auto& waiting = scheduler_.waiting();
  if (const auto found = std::ranges::find_if(running(), has_id); found != running().end()) {
    return found->get();
  }
  const auto found = std::ranges::find_if(waiting, has_id);
  return found == waiting.end() ? nullptr : found->get();
}

void Engine::Impl::AdmitWaiting() {
  if (scheduler_.waiting().empty()) return;
  admitted_.clear();
  scheduler_.Admit(&admitted_);
  for (Sequence* sequence : admitted_) {
    if (sequence->plan.open()) planning_->MakeFirstPlan(running(), sequence);
  }
}

bool Engine::Impl::Step() {
  if (!attached_) Attach();
  TakeInbox();
  AdmitWaiting();
  if (running().empty()) {
    timer_.Idle();
    return !scheduler_.waiting().empty();
  }
  Propose();
  const bool planned = target_pass_.Plan(budget_, &scheduler_, &round_);
  EndSpeculationOfPreempted();
  if (!planned) return true;
  if (ahead_.has_value()) {
    ahead_->SendRetrieved(round_, static_cast<int>(running().size()), budget_, &drafters_);
  }
  const std::int64_t pass_start = NowNs();
  const Logits logits = target_pass_.Run();
  timer_.RecordPass(pass_start, NowNs(), &round_);

  if (ahead_.has_value()) TakeNews();
  VerifyPass(logits);
  if (ahead_.has_value()) ahead_->AnswerOutcomes(round_, running(), &budget_, &drafters_);
  timer_.RecordOutcomes(round_);
  EmitPass(logits);
  LearnFromRound();
  for (Sequence* sequence : round_.pass) {
    sequence->in_pass = false;
    if (sequence->finish.has_value()) Retire(sequence);
  }
  return true;
}

void Engine::Impl::Propose() {
  const std::int64_t start = NowNs();
  for (const auto& sequence : running()) FollowPlan(sequence.get());
  budget_.SetPrices();
  drafters_.Propose(running(), &budget_);
  if (ahead_.has_value()) ahead_->AwaitProposals(running());
  round_.wait_ns = NowNs() - start;
}

void Engine::Impl::FollowPlan(Sequence* sequence) {
  const bool ahead = sequence->plan.mode.during();
  if (sequence->opened && !ahead) EndSpeculation(sequence);
  sequence->speculated = sequence->speculated || sequence->plan.mode.drafts();
  if (ahead) ahead_->Open(sequence);
}

void Engine::Impl::TakeNews() {
  const DraftPasses news = ahead_->TakeNews();
  timer_.RecordDraft(news);
  if (planning_.has_value()) planning_->ObserveDraft(news, running());
}

void Engine::Impl::VerifyPass(Logits logits) {
  round_.choose_ns = 0;
  for (Sequence* sequence : round_.pass) {
    sequence->hit.reset();
    sequence->hit_rank.reset();
    if (!sequence->verifies) {
      CommitRows(sequence->kv.committed + sequence->pass_rows, &sequence->kv);
      continue;
    }
    const std::int64_t start = NowNs();
    verifier_.Verify(logits, ahead_.has_value() ? &ahead_->speculator() : nullptr, sequence);
    round_.choose_ns += NowNs() - start;
    CommitOutcome(target_pass_.memory(), sequence);
  }
}

void Engine::Impl::EmitPass(Logits logits) {
  for (Sequence* sequence : round_.pass) {
    scheduler_.kv().Publish(sequence->tokens, &sequence->kv);
    if (sequence->verifies) emitter_.Emit(round_, logits, sequence);
  }
}

void Engine::Impl::LearnFromRound() {
  budget_.ObserveRound(round_);
  if (ahead_.has_value()) ahead_->ObserveRound(round_);
  if (planning_.has_value()) planning_->Consult(round_, running());
}

void Engine::Impl::EndSpeculation(Sequence* sequence) {
  if (!sequence->speculated) return;
  sequence->speculated = false;
  drafters_.Forget(sequence->id);
  if (ahead_.has_value()) ahead_->Close(sequence);
}

void Engine::Impl::EndSpeculationOfPreempted() {
  // A waiting sequence holds no KV, here or at the draft; it starts afresh when it runs again.
  for (const auto& sequence : scheduler_.waiting()) EndSpeculation(sequence.get());
}

void Engine::Impl::ForcePreemption() {
  scheduler_.PreemptYoungest();
  EndSpeculationOfPreempted();
}

void Engine::Impl::Retire(Sequence* sequence) {
  const auto removed = scheduler_.Remove(sequence);
  EndSpeculation(removed.get());
  removed->stats.output_tokens = removed->output_tokens();
  removed->stats.finished_ns = NowNs();
  inbox_.FreePlace();
  const Request& request = removed->request;
  if (request.datastore != nullptr && request.learn && removed->output_tokens() > 0 &&
      removed->finish != FinishReason::kCancelled) {
    request.datastore->LearnOutput(removed->tokens, removed->prompt_tokens);
  }
  request.listener->OnFinish(removed->id, *removed->finish, removed->stats);
}

Status Engine::Impl::CheckIdle() const {
  if (inbox_.taken() != 0) {
    return Error{ErrorCode::kInternal,
                 fmt::format("{} requests are unfinished: not idle", inbox_.taken())};
  }
  const KvUsage usage = scheduler_.kv().Usage();
  if (usage.used != 0 || usage.free + usage.cached != usage.total) {
    return Error{ErrorCode::kInternal,
                 fmt::format("KV blocks do not add up when idle: {} free + {} cached + {} used of "
                             "{}",
                             usage.free, usage.cached, usage.used, usage.total)};
  }
  return scheduler_.kv().CheckIntegrity();
}

}  // namespace foretoken
