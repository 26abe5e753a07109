#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "base/result.h"
#include "engine/engine_options.h"
#include "engine/engine_stats.h"
#include "engine/measured_times.h"
#include "engine/proposers.h"
#include "foretoken/request.h"
#include "kv/kv_cache.h"
#include "model/model.h"
#include "planner/online_planner.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// Decodes many sequences together: continuous batching, chunked prefill, preemption, prefix
/// cache. Each sequence speculates by a plan of its own, so sequences of different modes share a
/// pass.
///
/// One thread calls Step; Submit, SubmitAll, ChangePlan and Cancel may come from any thread.
class Engine {
 public:
  /// `target`, its `device` and `tokenizer` (may be null: no text, no stop strings) outlive the
  /// engine.
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options, Model* target,
                                                Device* device, const Tokenizer* tokenizer,
                                                Proposers proposers,
                                                const MeasuredTimes& times = {});
  ~Engine();

  /// Queues a request, or says in one sentence why it can never run (kInvalidInput) or that the
  /// queue is full (kUnavailable).
  Result<SequenceId> Submit(Request request);

  /// Queues all of several requests or, where one of them would be refused, none.
  Result<std::vector<SequenceId>> SubmitAll(std::vector<Request> requests);

  /// From its next round on the sequence speculates by `plan`; unknown ids are ignored. An error
  /// where this engine cannot follow the plan.
  Status ChangePlan(SequenceId sequence, const PlanOptions& plan);

  /// Ends a request at the next step; unknown or finished ids are ignored.
  void Cancel(SequenceId sequence);

  /// One round: admit, forward, verify, emit. False when there was nothing to do.
  bool Step();

  /// Steps until nothing is left.
  void RunUntilIdle() {
    while (Step()) {
    }
  }

  const EngineOptions& options() const;
  /// As Create was given them.
  const MeasuredTimes& times() const;
  /// Whether requests may choose the mode.
  bool Offers(Mode mode) const;
  const EngineStats& stats() const;
  void ResetStats();
  /// What mode auto has decided and how its predictions fared; none without a planner.
  std::optional<PlannerReport> planner_report() const;
  KvUsage kv_usage() const;
  /// Sequences in the batch, and those that wait for a place. As Step and stats(): the stepping
  /// thread's.
  int running() const;
  int waiting() const;
  /// With no sequence alive: every block is free or cached, and the counts add up.
  Status CheckIdle() const;
  /// Preempts the youngest running sequence now, as a full pool would: for tests.
  void ForcePreemption();

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
