#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "core/prediction/hit_curve.h"
#include "core/speculation/plan.h"

/// Event simulation of the round process: targets, draft devices and the messages between them,
/// with times and luck from given numbers. Where the theory has a formula for the same process
/// (core/prediction/theory_testing.h), the two agree; the simulator also answers where no formula
/// does: several draft devices that share a cache's branches, several targets that share draft
/// devices, caches that are cut off at any time.
namespace foretoken {

/// Microseconds of a pass over that many rows (> 0).
using PassTime = std::function<double(int rows)>;

/// How verifications end that verify a proposal of one source.
struct OutcomeDistribution {
  /// [k]: P(token k + 1 accepted | the first k were); the last value holds beyond.
  std::vector<double> acceptance = {0};
  HitCurves curves;  ///< An empty proposal has only its last node (k = K).
};

/// Who waits while the draft drafts just in time for a sequence that missed (Fallback::kJit).
enum class JitWait : std::uint8_t {
  kBatch,     ///< All sequences of its target: the paper's implementation (Corollary 16).
  kSequence,  ///< It alone; it sits out the passes meanwhile.
  kNobody,    ///< Drafts just in time where every sequence missed; else it goes on with one row.
};

struct SimulatorOptions {
  Mode mode = Mode::kSsd;  ///< kAr, kSd or kSsd.
  int targets = 1;         ///< Target deployments.
  int batch = 1;           ///< b: sequences of each, always full.
  int draft_devices = 1;   ///< Shared by all targets. SSD only.
  int lookahead = 6;       ///< K
  /// F_k for k = 0..K. The last entry is that of a proposal's last node, however short it is.
  FanoutShape primary = UniformFanout(3, 6);
  FanoutShape after_fallback = UniformFanout(3, 6);
  Fallback fallback = Fallback::kJit;  ///< Not kAuto.
  JitWait jit_wait = JitWait::kNobody;
  /// The draft cannot be interrupted, and an outcome's lookup waits until the cache is complete
  /// (Theorem 7's max(1, T_p)); without it what is there by then is the proposal.
  bool whole_cache = false;
  /// Rows of one draft pass, at most: what is more takes several. 0: any number.
  int draft_rows_per_pass = 0;

  /// Outcomes of proposals from the cache, from SD's draft and just in time.
  OutcomeDistribution after_primary;
  /// Outcomes of kRandom's, kNgram's and kRetrieval's proposals, and of empty ones.
  OutcomeDistribution after_backup;

  PassTime target_us;
  PassTime draft_us;       ///< On one draft device; up to draft_rows_per_pass.
  PassTime sd_draft_us;    ///< On the target's devices. SD only.
  double overhead_us = 0;  ///< The host's share of every round, before the target's pass.
  double backup_us = 0;    ///< The host's, for each proposal of kRandom, kNgram or kRetrieval.
  double channel_us = 0;   ///< The time of a message between target and draft, one way.

  std::uint64_t seed = 1;
  int warmup = 50;    ///< Passes per target before counting starts.
  int passes = 2000;  ///< Passes per target, on average, that count.
};

/// What was counted between the end of the warm-up and the end.
struct SimulatorResult {
  double elapsed_us = 0;
  std::int64_t passes = 0;    ///< Passes of all targets.
  std::int64_t rounds = 0;    ///< Verifications of a sequence: at most `batch` a pass.
  std::int64_t tokens = 0;    ///< Emitted.
  std::int64_t proposed = 0;  ///< Verified proposal tokens.
  std::int64_t accepted = 0;
  std::int64_t hits = 0;  ///< SSD: rounds whose outcome the cache had at least one token for.
  std::int64_t late = 0;  ///< SSD: misses whose branch was planned but had no token yet.
  std::int64_t rounds_at_end = 0;  ///< Rounds that accepted all they verified.
  std::int64_t hits_at_end = 0;    ///< Hits among them.
  /// Tokens of branches and just-in-time chains, finished passes only.
  std::int64_t draft_tokens = 0;
  /// The time of passes, SD's drafting included; summed over targets.
  double target_busy_us = 0;
  double draft_busy_us = 0;  ///< Summed over draft devices.
  int targets = 0;
  int sequences = 0;      ///< targets * batch
  int draft_devices = 0;  ///< 0 unless SSD.

  double tokens_per_second() const { return 1e6 * static_cast<double>(tokens) / elapsed_us; }
  double tokens_per_second_per_sequence() const { return tokens_per_second() / sequences; }
  double tokens_per_round() const { return Ratio(tokens, rounds); }
  double proposal_length() const { return Ratio(proposed, rounds); }
  double hit_rate() const { return Ratio(hits, rounds); }
  double hit_rate_at_end() const { return Ratio(hits_at_end, rounds_at_end); }
  double hit_rate_before_end() const { return Ratio(hits - hits_at_end, rounds - rounds_at_end); }
  /// Time between two verifications of one sequence.
  double round_us() const { return elapsed_us * sequences / static_cast<double>(rounds); }
  double target_utilisation() const { return target_busy_us / (elapsed_us * targets); }
  double draft_utilisation() const {
    return draft_devices == 0 ? 0 : draft_busy_us / (elapsed_us * draft_devices);
  }

 private:
  static double Ratio(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

/// Refuses what is outside of the ranges above, in one sentence.
Status CheckSimulatorOptions(const SimulatorOptions& options);

/// Deterministic: the same options give the same result. What befalls a sequence at a position (a
/// token's acceptance there, the bonus token's rank) depends on the seed, the sequence and the
/// position only, so that runs with other times, modes or devices meet the same luck. The options
/// must pass CheckSimulatorOptions.
SimulatorResult Simulate(const SimulatorOptions& options);

}  // namespace foretoken
