#pragma once

#include <span>
#include <vector>

/// The formulas of "Speculative Speculative Decoding" (Kumar, Dao and May, 2026) and of speculative
/// decoding as the paper uses it, in its symbols and under its names. Times are in units of one
/// target pass. All functions are pure; probabilities outside [0, 1], negative times and
/// lookaheads are programming errors.
namespace foretoken::theory {

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

// --- Acceptance -------------------------------------------------------------------------------

/// Theorem 1: alpha = sum_x min(p_target(x), p_draft(x)) = 1 - |p_target - p_draft|_1 / 2, the
/// acceptance rate of rejection sampling. Both laws are over the same vocabulary.
double AcceptanceRate(std::span<const double> p_target, std::span<const double> p_draft);

/// P(exactly k of K tokens are accepted) at acceptance rate `a` (A.2): a^k (1 - a) for k < K, and
/// a^K for k = K.
double OutcomeProbability(double a, int K, int k);

/// Tokens of a round, bonus token included: (1 - a^(K+1)) / (1 - a); K + 1 at a = 1.
double ExpectedTokens(double a, int K);

/// Where a speculative decoder is fastest.
struct OptimalLookahead {
  int K = 0;           ///< 0: not speculating is best.
  double speedup = 1;  ///< Over autoregressive decoding.
};

/// The K in [0, max_K] with the highest SD speed-up ExpectedTokens(a, K) / (1 + K t), where a draft
/// pass takes `t`.
OptimalLookahead BestLookahead(double a, double t, int max_K);

// --- Speed ------------------------------------------------------------------------------------

/// What Theorem 7 and its corollaries are about.
struct SsdRound {
  double p_hit = 0;   ///< P(a round's outcome was in the speculation cache).
  double E_hit = 1;   ///< Expected tokens of a round that the primary speculator proposed for.
  double E_miss = 1;  ///< The same for the backup speculator.
  double T_p = 0;     ///< The primary speculator's time for one round's cache.
  double T_b = 0;     ///< The backup speculator's time for one proposal.
};

/// SD: E_SD / (1 + T_SD).
double SpeedupSd(double E_SD, double T_SD);

/// Theorem 7: SSD's speed-up over autoregressive decoding, one sequence.
double SpeedupSsd(const SsdRound& round);

/// Corollary 16: the same for a batch of `b` sequences that all wait for any sequence's backup.
/// Infinite `b` gives the corollary's limit. The speed-up is that of each sequence.
double SpeedupSsd(const SsdRound& round, double b);

/// Equation (1): the unconditional hit rate from those after a primary's and after a backup's
/// proposal. Where the first is 1 and the second 0, the first round, a primary's, decides: 1.
double HitRate(double p_hit_p, double p_hit_b);

/// Corollary 8: SSD's speed over SD's, with the same speculator as primary, backup and SD's draft.
/// At least 1.
double GainOverSd(double p_hit, double T_SD);

/// Corollary 9: bounds of SSD's speed over SD's, for T_p <= 1, T_b = 0 and 1 <= E_miss <= E_hit.
struct Sandwich {
  double lower = 0;
  double upper = 0;
};
Sandwich GainBounds(double p_hit, double E_hit, double E_SD, double T_SD);

/// Theorem 17: the batch size b* below which a just-in-time draft (time T_p, E_hit tokens) is the
/// better backup, and from which a backup without latency (E_miss tokens) is. 0: the fast one
/// always; infinity: the slow one always (the logarithm's argument lies outside (0, 1)). Needs
/// T_p <= 1, as the theorem does.
double CriticalBatch(double p_hit, double E_hit, double E_miss, double T_p);

// --- Cache shape ------------------------------------------------------------------------------

/// Theorem 12: the real fan-outs F_0 .. F_K that maximise the hit rate under sum F_k = B, for
/// acceptance rate `a_p` and a miss rate of F^-r (Definition 11). They may lie below 1, where that
/// law means nothing; GeometricFanoutShape rounds them. At a_p = 1 all of B is F_K, at a_p = 0 it
/// is F_0.
std::vector<double> GeometricFanout(double a_p, double r, int K, double B);
/// The same into F[0 .. K], without allocating.
void GeometricFanout(double a_p, double r, double B, std::span<double> F);

/// Theorem 18: what the slope of the hit rate at node k must be, over that at node 0, where the
/// fan-out is optimal: a_p^-k for k < K, and (1 - a_p) a_p^-K at K. Needs a_p > 0.
double OptimalSlopeRatio(double a_p, int K, int k);

// --- Saguaro sampling -------------------------------------------------------------------------

/// Definition 14: sigma_{F,C}, the law that results from multiplying the F likeliest tokens of
/// `p_draft` by C (ties: the lowest ids) and normalising. Where nothing lies outside those F, every
/// C > 0 leaves the law as it is, and so does C = 0 here.
std::vector<double> SaguaroLaw(std::span<const double> p_draft, int F, double C);

/// Theorem 15: P(bonus token in top_F(p_draft) | a token drawn from SaguaroLaw(p_draft, F, C) was
/// rejected), the set being fixed. 1 where nothing is ever rejected. Falls as C rises.
double ResidualHitRate(std::span<const double> p_target, std::span<const double> p_draft, int F,
                       double C);

/// Theorem 19's hit rate (A.3.1): as above, but the cache holds the F likeliest tokens of `p_draft`
/// other than the one that was drawn and rejected, as a real one does.
double HitRateAfterRejection(std::span<const double> p_target, std::span<const double> p_draft,
                             int F, double C);

// --- Appendix C -------------------------------------------------------------------------------

/// What SSD costs beyond SD, per round, for B sequences, lookahead K and uniform fan-out F.
struct SsdOverhead {
  double draft_tokens_sd = 0;   ///< B K.
  double draft_tokens_ssd = 0;  ///< B K (K + 1) F.
  double flops_sd = 0;          ///< Of the draft, in target-token FLOPs: c_hat B K.
  double flops_ssd = 0;         ///< c_hat B K (K + 1) F.
  double cache_bytes = 0;       ///< B K (K + 1) F tokens, each with V logits where those are kept.
  double outcome_bytes = 0;     ///< Target to draft: an accepted length and a bonus token each.
  double proposal_bytes = 0;    ///< Draft to target: B K tokens, each with V logits where needed.
};

/// `c_hat`: FLOPs of a draft token over those of a target token. `logit_bytes`: 2 in the paper's
/// implementation (BF16); 0 where only tokens cross, as with shared-noise verification.
SsdOverhead Overhead(int B, int K, int F, int V, double c_hat, int logit_bytes);

// NOLINTEND(readability-identifier-naming)

}  // namespace foretoken::theory
