#include "core/engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/engine/inbox.h"
#include "core/engine/round/auto_planning.h"
#include "core/engine/round/disturbance.h"
#include "core/engine/round/drafters.h"
#include "core/engine/round/emitter.h"
#include "core/engine/round/mask_work.h"
#include "core/engine/round/round.h"
#include "core/engine/round/speculation_ahead.h"
#include "core/engine/round/target_pass.h"
#include "core/engine/round/verifier.h"
#include "core/engine/rules.h"
#include "core/engine/scheduler.h"

namespace foretoken {
namespace {

KvRoom RoomOf(const EngineConfig& config, std::int64_t kv_tokens, const ModelConfig& target) {
  const KvDemand demand{
      .sequences = config.max_batch, .rows = config.prefill_chunk, .nodes = kMaxProposal};
  return RoomFor(BlocksFor(kv_tokens), WindowOf(target), AnchorsOf(target), demand,
                 config.prefix_cache);
}

// `taps` and, behind them, what of `others` is not among them.
TapShape With(TapShape taps, const TapShape& others) {
  if (taps.points.empty()) return others;
  for (const int point : others.points) {
    if (std::ranges::find(taps.points, point) == taps.points.end()) taps.points.push_back(point);
  }
  return taps;
}

std::vector<Token> AnswerTo(std::span<const Token> prompt, const std::optional<Script>& script) {
  if (!script.has_value() || script->answer == nullptr) return {};
  return script->answer(prompt);
}

// What the target's passes keep, and for whom.
struct KeptTaps {
  // `judge` may be null.
  KeptTaps(const ByDrafter<TapShape>& read, const TapShape& captured, const JudgeHead* judge)
      : of_first(With(read[DrafterId::kModel], captured)), all(of_first) {
    for (const DrafterId id : kDrafterIds) parts[id] = AddTaps(read[id], &all);
    if (judge == nullptr) return;
    judged = AddTaps({.points = {TapShape::kFinalState}, .hidden = judge->hidden()}, &all);
  }

  const TapShape of_first;  // What the first draft reads and, behind it, what is captured.
  TapShape all;
  ByDrafter<TapPart> parts;
  TapPart judged;  // The judge's.
};

}  // namespace

/// Who is there: requests, admission and the sequences' lives. What happens in a round is the
/// business of its parts (core/engine/round), in the order of Step.
struct Engine::Impl {
  Impl(const EngineConfig& config, const EngineSizes& sizes, Model* target, Device* target_device,
       const Tokenizer* target_tokenizer, Proposers proposers, MeasuredTimes measured);
  ~Impl();

  const RunningSet& running() const { return scheduler.running(); }
  bool Offers(Mode mode) const;
  // The engine's own where nothing is wanted; an error where this engine cannot follow it.
  Result<SpeculationPlan> PlanOf(const std::optional<PlanOptions>& wanted) const;
  Sequence* Find(SequenceId id) const;

  // A round, in this order.
  bool Step();
  void Attach();
  // After a pass: whether other programs have held it up.
  void WatchCores(std::int64_t now_ns);
  void TakeInbox();
  void TakeDraft(DraftExchange* draft);
  void WorkOnMasks();
  void Propose();
  void VerifyPass(Logits logits);

  void EndSpeculation(Sequence* sequence);
  void EndSpeculationOfPreempted();
  void Retire(Sequence* sequence);

  const EngineConfig options;
  const MeasuredTimes times;
  Device* const device;
  const Tokenizer* const tokenizer;
  std::vector<Token> eos;  // The end-of-sequence tokens of the model and of its tokenizer.
  RequestBounds bounds;
  bool attached = false;

  Inbox inbox;
  Scheduler scheduler;

  Round round;
  const KeptTaps kept;
  TargetPass target_pass;
  Drafters drafters;
  std::optional<SpeculationAhead> ahead;  // Where there is a speculator.
  std::optional<AutoPlanning> planning;   // Where plans may be open.
  Verifier verifier;
  Emitter emitter;
  RoundTimer timer;
  PassWatch watch;
  Disturbance disturbance;
  OwnersCore owners_core;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> CreateEngine(EngineConfig config, Model* target, Device* device,
                                             const Tokenizer* tokenizer, Proposers proposers,
                                             MeasuredTimes times) {
  config.plan = CompletePlan(config.plan);
  const EngineSizes sizes = SizesFor(config, target->config());
  FT_RETURN_IF_ERROR(ValidateConfig(config, sizes));
  FT_CHECK((config.lossy.kind == Lossy::kJudge) == (config.judge != nullptr));
  auto impl = std::make_unique<Engine::Impl>(config, sizes, target, device, tokenizer,
                                             std::move(proposers), std::move(times));
  FT_RETURN_IF_ERROR(CheckPlan(config.plan, impl->bounds));
  return std::make_unique<Engine>(std::move(impl));
}

Result<SequenceId> Engine::Submit(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  FT_ASSIGN_OR_RETURN(const std::vector<SequenceId> ids, SubmitAll(std::move(requests)));
  return ids.front();
}

Result<std::vector<SequenceId>> Engine::SubmitAll(std::vector<Request> requests) {
  const EngineConfig& config = impl_->options;
  std::vector<SpeculationPlan> plans;
  for (const Request& request : requests) {
    FT_CHECK(request.listener != nullptr);
    FT_RETURN_IF_ERROR(CheckRequest(request, impl_->bounds));
    FT_ASSIGN_OR_RETURN(const SpeculationPlan plan, impl_->PlanOf(request.plan));
    plans.push_back(plan);
    if (request.stop.max_tokens == 0) plans.back().mode = Mode::kAr;  // Nothing to speculate on.
  }
  FT_ASSIGN_OR_RETURN(const SequenceId first, impl_->inbox.TakePlaces(Int(requests.size())));
  try {
    std::vector<SequenceId> ids;
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ids.push_back(first + i);
      auto sequence = std::make_unique<Sequence>(
          ids[i], std::move(requests[i]), plans[i], impl_->bounds.vocabulary,
          impl_->bounds.max_context, impl_->eos, impl_->tokenizer);
      sequence->draws = config.verification == Verification::kRejection &&
                        sequence->request.sampling.temperature > 0 && !config.script.has_value();
      sequence->scripted = AnswerTo(sequence->request.prompt, config.script);
      sequence->stats.submitted_ns = NowNs();
      if (plans[i].mode != Mode::kAr) sequence->stats.lossy_rule = config.lossy.kind;
      sequences.push_back(std::move(sequence));
    }
    impl_->inbox.Submit(std::move(sequences));
    return ids;
  } catch (...) {  // Out of memory.
    for (std::size_t i = 0; i < requests.size(); ++i) impl_->inbox.FreePlace();
    throw;
  }
}

Status Engine::ChangePlan(SequenceId sequence, const PlanOptions& plan) {
  FT_ASSIGN_OR_RETURN(const SpeculationPlan complete, impl_->PlanOf(plan));
  impl_->inbox.ChangePlan(sequence, complete);
  return {};
}

void Engine::UseDraft(std::shared_ptr<NextDraft> draft) {
  impl_->inbox.UseDraft(std::static_pointer_cast<DraftExchange>(std::move(draft)));
}

void Engine::Cancel(SequenceId sequence) { impl_->inbox.Cancel(sequence); }
bool Engine::Step() { return impl_->Step(); }
void Engine::Attach() { impl_->Attach(); }

EngineLimits Engine::limits() const {
  const EngineConfig& config = impl_->options;
  const RequestBounds& bounds = impl_->bounds;
  return {.context = bounds.max_context,
          .batch = config.max_batch,
          .queue = config.max_waiting,
          .lookahead = bounds.max_lookahead,
          .cache_budget = bounds.max_cache_budget,
          .knee_rows = impl_->times.knee_rows};
}

PlanOptions Engine::plan() const {
  const SpeculationPlan& plan = impl_->options.plan;
  return {.mode = plan.mode,
          .lookahead = plan.lookahead,
          .tree_width = plan.tree_width,
          .fallback = plan.fallback,
          .fanout = Fanout{.rule = plan.fanout,
                           .counts = {plan.primary.at.begin(), plan.primary.at.end()}}};
}

bool Engine::Offers(Mode mode) const { return impl_->Offers(mode); }
const EngineStats& Engine::stats() const { return impl_->timer.stats(); }
void Engine::ResetStats() { impl_->timer.ResetStats(); }
KvUsage Engine::kv_usage() const { return impl_->scheduler.kv().Usage(); }
KvUsage Engine::recent_kv_usage() const { return impl_->scheduler.kv().RecentUsage(); }
int Engine::running() const { return impl_->running().size(); }
int Engine::waiting() const { return impl_->scheduler.waiting().size(); }

std::optional<PlannerReport> Engine::planner_report() const {
  if (!impl_->planning.has_value()) return std::nullopt;
  return impl_->planning->Report();
}

Status Engine::CheckIdle() const {
  const int unfinished = impl_->inbox.taken();
  if (unfinished != 0) {
    return InternalError("{} requests are unfinished: not idle", unfinished);
  }
  for (const KvUsage& usage : {kv_usage(), recent_kv_usage()}) {
    if (usage.used != 0 || usage.free + usage.cached != usage.total) {
      return InternalError("KV blocks do not add up when idle: {} free + {} cached + {} used of {}",
                           usage.free, usage.cached, usage.used, usage.total);
    }
  }
  return impl_->scheduler.kv().CheckIntegrity();
}

const EngineConfig& ConfigOf(const Engine& engine) { return engine.impl().options; }
const MeasuredTimes& TimesOf(const Engine& engine) { return engine.impl().times; }
const TapShape& TapsOf(const Engine& engine) { return engine.impl().kept.of_first; }
EngineKv KvOf(Engine& engine) {
  Engine::Impl& impl = engine.impl();
  return {.scheduler = &impl.scheduler, .store = impl.target_pass.memory().store};
}
void ForcePreemption(Engine& engine) {
  engine.impl().scheduler.PreemptYoungest();
  engine.impl().EndSpeculationOfPreempted();
}

Engine::Impl::Impl(const EngineConfig& config, const EngineSizes& sizes, Model* target,
                   Device* target_device, const Tokenizer* target_tokenizer, Proposers proposers,
                   MeasuredTimes measured)
    : options(config),
      times(std::move(measured)),
      device(target_device),
      tokenizer(target_tokenizer),
      eos(target->config().eos),
      bounds{.vocabulary = target->config().vocabulary,
             .max_context = sizes.context,
             .has_tokenizer = tokenizer != nullptr,
             .adapters = target->adapters(),
             .max_lookahead = sizes.lookahead,
             .max_nodes = sizes.nodes,
             .max_cache_budget = sizes.cache_budget,
             .knows_row_times = times.knee_rows > 0 && !times.row_times.rows().empty()},
      inbox(config.max_batch + config.max_waiting),
      scheduler(RoomOf(config, sizes.kv_tokens, target->config()), config.prefix_cache,
                config.max_batch),
      kept(proposers.taps, config.kept, config.judge.get()),
      target_pass(target, scheduler.kv(), kept.all, config.max_batch, config.prefill_chunk),
      drafters(std::move(proposers.before), RetrievalBudget(times, sizes.nodes), target_pass.taps(),
               kept.parts, bounds.vocabulary, config.max_batch,
               {.store = target_pass.memory().store, .cache = &scheduler.kv()}),
      verifier(&target->backend(), bounds.vocabulary, config.script, config.lossy,
               {options.judge.get(), target_pass.taps(), kept.judged}),
      emitter(bounds.vocabulary, target->config().hidden) {
  for (const Token token : tokenizer == nullptr ? std::vector<Token>() : tokenizer->eos()) {
    if (std::ranges::find(eos, token) == eos.end()) eos.push_back(token);
  }
  scheduler.kv().ClearTakenBlocksIn(target_pass.memory().store);
  round.pass.reserve(config.max_batch);
  if (proposers.speculator != nullptr) {
    ahead.emplace(std::move(proposers.speculator), target_pass.taps(),
                  kept.parts[DrafterId::kModel]);
  }
  if (config.planner.has_value()) planning.emplace(times.costs, *config.planner);
  for (const Mode mode : kModes) {
    if (Offers(mode)) bounds.offered.push_back(mode);
  }
}

Engine::Impl::~Impl() {
  if (!options.when_closed || !planning.has_value()) return;
  std::int64_t rounds = 0;
  for (const ModeReport& mode : planning->Report().modes) rounds += mode.rounds;
  options.when_closed(planning->Learned(), rounds);
}

bool Engine::Impl::Offers(Mode mode) const {
  if (mode.planned()) return planning.has_value();
  if (mode.during()) return ahead.has_value() && NeedsDraft(mode);
  return !mode.drafts() || drafters.Has(mode.drafter);
}

Result<SpeculationPlan> Engine::Impl::PlanOf(const std::optional<PlanOptions>& wanted) const {
  if (!wanted.has_value()) return options.plan;  // Has been checked.
  FT_ASSIGN_OR_RETURN(SpeculationPlan plan, ApplyOptions(*wanted, options.plan));
  plan = FitTree(plan, bounds);
  FT_RETURN_IF_ERROR(CheckPlan(plan, bounds));
  return plan;
}

Sequence* Engine::Impl::Find(SequenceId id) const {
  const auto find = [id](const auto& sequences) -> Sequence* {
    const auto found = std::ranges::find(sequences, id, &Sequence::id);
    return found == sequences.end() ? nullptr : found->get();
  };
  Sequence* found = find(running());
  return found != nullptr ? found : find(scheduler.waiting());
}

bool Engine::Impl::Step() {
  if (!attached) Attach();
  TakeInbox();
  if (scheduler.MakeWay()) EndSpeculationOfPreempted();  // The newcomer's may take its place.
  for (const auto& sequence : scheduler.Admit()) {
    if (sequence->plan.open()) planning->MakeFirstPlan(running(), sequence.get());
  }
  if (running().empty()) {
    timer.Idle();
    return !scheduler.waiting().empty();
  }
  WorkOnMasks();
  if (planning.has_value()) planning->ProposeShadow(running(), &drafters);
  Propose();
  const bool planned = target_pass.Plan(drafters.budget(), &scheduler, &round);
  EndSpeculationOfPreempted();
  if (!planned) return true;
  if (ahead.has_value()) ahead->SendRetrieved(round, running(), &drafters);
  watch.Begin(round.pass_ns);
  const std::int64_t pass_start = NowNs();
  const Logits logits = target_pass.Run();
  timer.RecordPass(pass_start, NowNs(), &round);
  WatchCores(pass_start + round.pass_ns);

  if (ahead.has_value()) {
    const DraftPasses drafted = ahead->TakeNews();
    timer.RecordDraft(drafted);
    if (planning.has_value()) planning->ObserveDraft(drafted, running());
  }
  VerifyPass(logits);
  if (ahead.has_value()) ahead->AnswerOutcomes(round, running(), &drafters);
  timer.RecordOutcomes(round);
  for (Sequence* sequence : round.pass) {
    if (!sequence->not_finite) scheduler.kv().Publish(sequence->tokens, &sequence->kv);
    emitter.ScorePrompt(logits, sequence);
    emitter.PoolPrompt(target_pass.states(), sequence);
    if (sequence->verifies) emitter.Emit(round, logits, sequence);
  }
  drafters.budget().ObserveRound(round);
  if (ahead.has_value()) ahead->ObserveRound(round);
  if (planning.has_value()) planning->Consult(round, running());
  for (Sequence* sequence : round.pass) {
    sequence->in_pass = false;
    if (sequence->finish.has_value()) Retire(sequence);
  }
  return true;
}

void Engine::Impl::WatchCores(std::int64_t now_ns) {
  ThreadPool& pool = device->pool();
  const CoreWaits waits = watch.End(pool);
  round.disturbed = disturbance.Observe(now_ns, round.pass_ns, waits);
  if (owners_core.Observe(round.pass_ns, waits, pool.size())) pool.MoveOwner();
}

void Engine::Impl::Attach() {
  device->Adopt();
  attached = true;
}

void Engine::Impl::TakeInbox() {
  Inbox::Mail mail = inbox.Take();
  for (auto& sequence : mail.submitted) scheduler.Enqueue(std::move(sequence));
  for (const auto& [id, plan] : mail.changed_plans) {
    Sequence* sequence = Find(id);
    if (sequence == nullptr) continue;
    sequence->plan = plan;
    if (plan.mode != Mode::kAr) sequence->stats.lossy_rule = options.lossy.kind;
    sequence->estimate.reset();
    if (plan.open()) planning->MakeFirstPlan(running(), sequence);
  }
  for (const SequenceId id : mail.cancelled) {
    Sequence* sequence = Find(id);
    if (sequence == nullptr) continue;
    sequence->finish = FinishReason::kCancelled;
    Retire(sequence);
  }
  if (mail.draft != nullptr) TakeDraft(mail.draft.get());
}

void Engine::Impl::TakeDraft(DraftExchange* draft) {
  // Sequences begin anew with the other draft, as if they had come to its modes just now.
  for (const auto& sequence : running()) EndSpeculation(sequence.get());
  if (draft->before != nullptr) drafters.Exchange(DrafterId::kModel, &draft->before);
  if (draft->during != nullptr)
    ahead->Exchange(&draft->during, {.first = 0, .width = draft->taps.width()});
  draft->done.store(true, std::memory_order_release);
}

void Engine::Impl::WorkOnMasks() {
  PrepareMasks(running());
  // From behind: Retire shortens the set.
  for (std::size_t i = running().size(); i-- > 0;) {
    if (running()[i]->finish.has_value()) Retire(running()[i].get());
  }
}

void Engine::Impl::Propose() {
  const std::int64_t start = NowNs();
  for (const auto& sequence : running()) {
    const Mode mode = sequence->plan.mode;
    if (sequence->opened && !mode.during()) EndSpeculation(sequence.get());
    sequence->speculated = sequence->speculated || mode.drafts();
    if (mode.during()) ahead->Open(sequence.get());
  }
  drafters.Propose(running());
  if (ahead.has_value()) ahead->AwaitProposals(running());
  for (const auto& sequence : running()) {
    if (sequence->alone) sequence->proposal.Clear();
  }
  round.wait_ns = NowNs() - start;
}

void Engine::Impl::VerifyPass(Logits logits) {
  round.choose_ns = 0;
  for (Sequence* sequence : round.pass) {
    sequence->hit.reset();
    sequence->hit_rank.reset();
    if (!sequence->verifies) {
      CommitRows(sequence->kv.committed + sequence->pass_rows, &sequence->kv);
      // Nothing was to follow the prompt.
      if (sequence->uncomputed() == 0) sequence->finish = FinishReason::kMaxTokens;
      continue;
    }
    const std::int64_t start = NowNs();
    verifier.Verify(logits, ahead.has_value() ? &ahead->speculator() : nullptr,
                    ProposalMaskSteps(round.pass.size()), sequence);
    round.choose_ns += NowNs() - start;
    if (sequence->not_finite && !sequence->alone) {
      TakeBack(target_pass.memory(), sequence);
      continue;
    }
    sequence->alone = false;
    if (!sequence->not_finite) {
      drafters.Observe(logits, *sequence);
      if (planning.has_value()) planning->TellShadow(logits, *sequence, running(), &drafters);
    }
    CommitOutcome(target_pass.memory(), sequence);
    const bool ended = sequence->finish.has_value();  // Before that row.
    if (sequence->not_finite && !ended) sequence->finish = FinishReason::kNotFinite;
  }
}

void Engine::Impl::EndSpeculation(Sequence* sequence) {
  if (!sequence->speculated) return;
  sequence->speculated = false;
  drafters.Forget(sequence->id);
  if (ahead.has_value()) ahead->Close(sequence);
}

void Engine::Impl::EndSpeculationOfPreempted() {
  // A waiting sequence holds no KV, here or at the draft; it starts afresh when it runs again.
  for (const auto& sequence : scheduler.waiting()) EndSpeculation(sequence.get());
}

void Engine::Impl::Retire(Sequence* sequence) {
  const bool learnable = sequence->request.learn && sequence->output_tokens() > 0 &&
                         sequence->finish != FinishReason::kCancelled &&
                         sequence->finish != FinishReason::kNotFinite &&
                         sequence->stats.lossy == 0;  // Else it is not what the model says.
  const bool of_target = sequence->request.adapter.index < 0;
  if (learnable && of_target && options.when_decoded && sequence->uncomputed() <= 1) {
    const TapPart captured{.first = 0, .width = kept.of_first.width()};
    options.when_decoded({.tokens = sequence->tokens,
                          .prompt_tokens = sequence->prompt_tokens,
                          .sampling = &sequence->request.sampling,
                          .taps = {target_pass.taps(), &sequence->kv, captured}});
  }
  // What its last pass made of its keys and values must not be read by others.
  if (sequence->finish == FinishReason::kNotFinite) scheduler.kv().Withdraw(&sequence->kv);
  const auto removed = scheduler.Remove(sequence);
  EndSpeculation(removed.get());
  const bool finite = removed->finish != FinishReason::kNotFinite;
  if (removed->request.learn && removed->output_tokens() > 0 && finite) {
    drafters.Remember({.tokens = removed->tokens,
                       .prompt = Size(removed->prompt_tokens),
                       .scope = removed->request.prefix_scope});
  }
  removed->stats.output_tokens = removed->output_tokens();
  removed->stats.finished_ns = NowNs();
  inbox.FreePlace();
  const Request& request = removed->request;
  if (learnable && request.datastore != nullptr) {
    request.datastore->LearnOutput(removed->tokens, removed->prompt_tokens);
  }
  request.listener->OnFinish(removed->id, *removed->finish, removed->stats);
}

}  // namespace foretoken
