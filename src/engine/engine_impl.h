#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "draft/random_drafter.h"
#include "draft/retrieval/retrieval_drafter.h"
#include "engine/engine.h"
#include "engine/plan_rules.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "kv/tree_kv.h"
#include "planner/retrieval_worth.h"
#include "prediction/row_price.h"
#include "sampling/logprobs.h"
#include "sampling/sampler.h"

namespace foretoken {

/// The round (docs/architecture.md), in the order in which it happens:
///   AdmitWaiting, CollectProposals, PlanPass, Forward, Verify, SendOutcomes, EmitTokens.
class Engine::Impl {
 public:
  Impl(EngineOptions options, const MeasuredTimes& times, Model* target, Device* device,
       const Tokenizer* tokenizer, Proposers proposers);

  Status Validate(const Request& request) const;
  Result<SequenceId> Submit(Request request);
  Status ChangePlan(SequenceId sequence, const PlanOptions& plan);
  void Cancel(SequenceId sequence);
  bool Step();

  const EngineOptions& options() const { return options_; }
  const MeasuredTimes& times() const { return times_; }
  bool Offers(Mode mode) const;
  const PlanBounds& bounds() const { return bounds_; }
  const EngineStats& stats() const { return stats_; }
  std::optional<PlannerReport> planner_report() const {
    return planner_ == nullptr ? std::nullopt : std::optional(planner_->Report());
  }
  void ResetStats() { stats_ = EngineStats{}; }
  KvUsage kv_usage() const { return scheduler_.kv().Usage(); }
  int running() const { return static_cast<int>(scheduler_.running().size()); }
  int waiting() const { return static_cast<int>(scheduler_.waiting().size()); }
  Status CheckIdle() const;
  void ForcePreemption();

 private:
  // engine.cc: who is there.
  // The engine's own where nothing is wanted; an error where this engine cannot follow it.
  Result<SpeculationPlan> PlanOf(const std::optional<PlanOptions>& wanted) const;
  void TakeInbox();
  Sequence* Find(SequenceId id) const;
  void AdmitWaiting();
  void HealSpeculator();
  void FollowPlan(Sequence* sequence);
  void Learn(const Sequence& sequence);
  void EndSpeculation(Sequence* sequence);
  void EndSpeculationOfPreempted();
  LiveSequence Describe(const Sequence& sequence) const;
  void Retire(Sequence* sequence);

  // round_proposals.cc: what is proposed.
  void CollectProposals();
  DraftContext ContextFor(Sequence* sequence);
  void DraftSynchronously(Mode mode);
  void AwaitChains();
  void LookUp(Sequence* sequence);
  void FallBack(Sequence* sequence, bool may_wait);
  Drafter* FallbackDrafter(Fallback fallback);
  void Dispatch(Sequence* sequence, bool wants_jit);
  void SendOutcomes();
  bool NobodyElseToServe() const;

  // round_retrieval.cc: how much retrieval proposes, and whether it pays to ask it.
  int NodesOf(const SpeculationPlan& plan) const;
  int MostNodes(const SpeculationPlan& plan) const;       // After a miss of the cache, too.
  int RetrievedNodes(const SpeculationPlan& plan) const;  // s_q - 1.
  void SetRowPrices();
  // Rows of the next pass, as far as they are known, without the sequence's own.
  int OtherRows(const Sequence& sequence) const;
  void RetrieveOnMiss(Sequence* sequence);  // Of the speculation cache.
  std::span<const double> PricesFor(const SpeculationPlan& plan) const;
  void SpareUselessRetrieval();  // Takes contexts out of contexts_.
  void SendRetrieved();
  void TeachRetrieval();

  // round_planning.cc: mode auto.
  void MakeFirstPlan(Sequence* sequence);
  void TakePlan(Sequence* sequence, const SpeculationPlan& plan);
  void ConsultPlanner();
  bool IsOneOfManyAlike() const;  // Of rounds of which the planner need not see all.
  void TeachPlanner(int rounds);  // That this one stands for.
  void Replan();
  Workload LoadNow() const;

  // round.cc: one target pass and what follows from it.
  // What the speculator has prepared by the end of the pass, and how long its own took.
  void TakeNews();
  bool PlanPass();
  void ReserveRows();
  int PlanRows(Sequence* sequence, int budget);
  void AppendRows(Sequence* sequence);
  void Verify(Sequence* sequence, Logits logits);
  Outcome VerifyByNoise(Sequence* sequence, Logits logits);
  Outcome VerifyByRejection(Sequence* sequence, Logits logits);
  Token Choose(Sequence* sequence, int node, Logits logits);
  Token ApplyScript(Sequence* sequence, int node, Token choice);
  void CommitOutcome(Sequence* sequence);
  void EmitTokens(Sequence* sequence, Logits logits);
  void ReportRound(const Sequence& sequence);
  void RecordRound(std::int64_t pass_start, std::int64_t pass_end);

  EngineOptions options_;
  std::vector<Mode> offered_;
  PlanBounds bounds_;
  MeasuredTimes times_;
  Model* target_;
  Device* device_;
  const Tokenizer* tokenizer_;
  Proposers proposers_;
  SpeculatorClient* speculator_;  // proposers_'s, for short.
  RandomDrafter random_;
  RetrievalDrafter retrieval_;  // Beside the draft: a fallback, and a source of likely outcomes.
  std::unique_ptr<OnlinePlanner> planner_;
  std::optional<RowPrice> row_price_;    // Where the target's passes were measured.
  std::vector<double> row_prices_;       // Of this round, by a proposal's tokens.
  std::vector<double> miss_prices_;      // The same for a sequence that falls back.
  RetrievalWorth worth_in_rounds_{0.2};  // Of asking in mode sssd ...
  RetrievalWorth worth_in_cache_{0.1};   // ... and for the speculation cache.
  unsigned alike_rounds_ = 0;
  bool asked_in_round_ = false;  // Retrieval was, in mode sssd at a price.
  std::vector<Token> eos_;
  Scheduler scheduler_;
  KvStore kv_;
  Sampler sampler_;
  ForwardBatch batch_;
  EngineStats stats_;
  bool adopted_ = false;

  // Reused between rounds.
  std::vector<Sequence*> admitted_;
  std::vector<Sequence*> pass_;
  std::vector<DraftContext> contexts_;
  Proposal retrieved_;
  std::vector<Token> prepared_;
  std::vector<TokenLogprob> logprobs_;

  // Of the last round, for the split of times.
  std::int64_t last_pass_end_ = 0;
  std::int64_t pass_ns_ = 0;
  std::int64_t gap_ns_ = 0;  // Before the pass; negative: the engine was idle.
  std::int64_t round_ns_ = 0;
  std::int64_t round_wait_ns_ = 0;
  std::int64_t round_choose_ns_ = 0;
  bool last_round_all_hit_ = false;
  bool pass_prefills_ = false;

  // Other threads put requests and cancellations here.
  std::mutex inbox_mutex_;
  std::atomic<bool> inbox_full_ = false;
  std::vector<std::unique_ptr<Sequence>> submitted_;
  std::vector<SequenceId> cancelled_;
  std::vector<std::pair<SequenceId, SpeculationPlan>> changed_plans_;
  std::atomic<int> unfinished_ = 0;
  SequenceId next_id_ = 1;
};

}  // namespace foretoken
