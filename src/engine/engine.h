#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "base/result.h"
#include "draft/drafter.h"
#include "foretoken/histogram.h"
#include "foretoken/request.h"
#include "kv/kv_cache.h"
#include "model/model.h"
#include "planner/online_planner.h"
#include "speculation/plan.h"
#include "ssd/speculator_client.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// Timing studies only: whether proposals are accepted and hits happen is drawn, not computed. The
/// output is then not the model's, and everything measured is labelled scripted.
struct Script {
  double acceptance = 0.8;
  double hit = 0.9;  ///< Chance that a bonus token is one the cache has prepared.
  std::uint64_t seed = 1;
};

/// What is known of the times of an engine's passes before its first one: measured once, and good
/// for every engine with the same models on the same cores. Empty parts were not measured.
struct MeasuredTimes {
  TimeTable row_times;  ///< Of the target's passes, for speculation lengths that pay.
  int knee_rows = 0;    ///< I_knee, for speculation lengths by the knee.
  CostModel costs;      ///< What the planner begins with.
};

struct EngineOptions {
  /// Of requests that bring none. An empty fan-out shape stands for kDefaultFanout at every node.
  SpeculationPlan plan;
  /// What mode auto may choose from; none: the engine plans nothing. A request whose plan is open
  /// is planned, round by round; so are all without a plan, where `plan` is open. MakeEngine adds
  /// and drops it as its modes and `plan` need one.
  std::optional<PlannerSettings> planner;
  int max_lookahead = 0;       ///< The most a request's plan may ask for; 0: as `plan`.
  int max_nodes = 0;           ///< The same for a plan's nodes; 0: as `plan`.
  int max_cache_budget = 0;    ///< Branches of a speculation cache; 0: as `plan`, more for trees.
  int max_batch = 16;          ///< Sequences decoded together.
  int max_waiting = 1024;      ///< Requests queued beyond those; more are refused.
  int prefill_chunk = 128;     ///< Prompt rows per pass, mixed with decoding rows.
  int max_context = 0;         ///< Tokens per sequence; 0: the model's limit.
  std::int64_t kv_tokens = 0;  ///< KV slots; 0: max_batch sequences of max_context.
  bool prefix_cache = true;
  /// Of sequences that sample; at temperature 0 both ways emit the same.
  Verification verification = Verification::kSharedNoise;
  std::optional<Script> script;
};

/// What an engine can propose with. A mode without its part is one that the engine does not offer;
/// autoregression and prompt lookup need none.
struct Proposers {
  std::array<std::unique_ptr<Drafter>, kModes> drafters;  ///< By Mode; on the target's device.
  std::unique_ptr<SpeculatorClient> speculator;           ///< Mode::kSsd.

  std::unique_ptr<Drafter>& of(Mode mode) { return drafters[static_cast<std::size_t>(mode)]; }
};

/// The options with every 0 that stands for a default replaced.
EngineOptions CompleteOptions(EngineOptions options, const ModelConfig& target);

/// Times of rounds in which every decoding sequence had a proposal or none was due; nanoseconds.
struct EngineStats {
  Histogram target;   ///< One target pass.
  Histogram wait;     ///< Waiting for a proposal: drafting in SD, just-in-time drafts in SSD.
  Histogram host;     ///< The rest of a round: choosing, verifying, emitting, planning.
  Histogram hit_gap;  ///< End of a pass to start of the next, all sequences hit.
  Histogram choose;   ///< Noise and choice of all visited rows of a round.
  std::int64_t passes = 0;
  std::int64_t rows = 0;
  DraftPasses draft;  ///< Of the speculator (SSD).
};

/// Decodes many sequences together: continuous batching, chunked prefill, preemption, prefix
/// cache. Each sequence speculates by a plan of its own, so sequences of different modes share a
/// pass.
///
/// One thread calls Step; Validate, Submit, ChangePlan and Cancel may come from any thread.
class Engine {
 public:
  /// `target`, its `device` and `tokenizer` (may be null: no text, no stop strings) outlive the
  /// engine.
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options, Model* target,
                                                Device* device, const Tokenizer* tokenizer,
                                                Proposers proposers,
                                                const MeasuredTimes& times = {});
  ~Engine();

  /// In one sentence why a request can never run here, if so.
  Status Validate(const Request& request) const;

  /// Queues a request, or says in one sentence why it can never run or that the queue is full.
  Result<SequenceId> Submit(Request request);

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
