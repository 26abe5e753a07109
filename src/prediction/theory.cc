#include "prediction/theory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace foretoken::theory {

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

namespace {

void CheckProbability(double p) { FT_CHECK(p >= 0 && p <= 1, "{} is not a probability", p); }

// The ids of the `F` largest entries, ties to the lowest ids.
std::vector<std::size_t> TopTokens(std::span<const double> law, std::size_t F) {
  std::vector<std::size_t> ids(law.size());
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  std::stable_sort(ids.begin(), ids.end(),
                   [law](std::size_t a, std::size_t b) { return law[a] > law[b]; });
  ids.resize(std::min(F, ids.size()));
  return ids;
}

double Residual(double p_target, double p_draft) { return std::max(p_target - p_draft, 0.0); }

}  // namespace

double AcceptanceRate(std::span<const double> p_target, std::span<const double> p_draft) {
  FT_CHECK(p_target.size() == p_draft.size());
  double alpha = 0;
  for (std::size_t x = 0; x < p_target.size(); ++x) alpha += std::min(p_target[x], p_draft[x]);
  return alpha;
}

double OutcomeProbability(double a, int K, int k) {
  CheckProbability(a);
  FT_CHECK(k >= 0 && k <= K, "node {} of a proposal of {} tokens", k, K);
  return std::pow(a, k) * (k < K ? 1 - a : 1);
}

double ExpectedTokens(double a, int K) {
  CheckProbability(a);
  FT_CHECK(K >= 0, "lookahead {}", K);
  // The sum of the series itself: its closed form (1 - a^(K+1)) / (1 - a) cancels close to a = 1.
  double tokens = 0;
  for (int k = K; k >= 0; --k) tokens = 1 + a * tokens;
  return tokens;
}

OptimalLookahead BestLookahead(double a, double t, int max_K) {
  OptimalLookahead best;
  for (int K = 1; K <= max_K; ++K) {
    const double speedup = SpeedupSd(ExpectedTokens(a, K), K * t);
    if (speedup > best.speedup) best = {K, speedup};
  }
  return best;
}

double SpeedupSd(double E_SD, double T_SD) {
  FT_CHECK(T_SD >= 0, "a time of {}", T_SD);
  return E_SD / (1 + T_SD);
}

double SpeedupSsd(const SsdRound& round) { return SpeedupSsd(round, 1); }

double SpeedupSsd(const SsdRound& round, double b) {
  CheckProbability(round.p_hit);
  FT_CHECK(round.T_p >= 0 && round.T_b >= 0 && b >= 1);
  const double tokens = round.p_hit * round.E_hit + (1 - round.p_hit) * round.E_miss;
  const double all_hit = std::pow(round.p_hit, b);
  return tokens / (all_hit * std::max(1.0, round.T_p) + (1 - all_hit) * (1 + round.T_b));
}

double HitRate(double p_hit_p, double p_hit_b) {
  CheckProbability(p_hit_p);
  CheckProbability(p_hit_b);
  const double changing = p_hit_b + (1 - p_hit_p);
  return changing == 0 ? 1 : p_hit_b / changing;
}

double GainOverSd(double p_hit, double T_SD) {
  const SsdRound round{.p_hit = p_hit, .T_p = T_SD, .T_b = T_SD};
  return SpeedupSsd(round) / SpeedupSd(1, T_SD);
}

Sandwich GainBounds(double p_hit, double E_hit, double E_SD, double T_SD) {
  CheckProbability(p_hit);
  const double upper = (1 + T_SD) * E_hit / E_SD;
  return {upper * p_hit, upper};
}

double CriticalBatch(double p_hit, double E_hit, double E_miss, double T_p) {
  CheckProbability(p_hit);
  FT_CHECK(T_p >= 0 && T_p <= 1, "T_p is {}: Theorem 17 holds up to 1", T_p);
  constexpr double kAlwaysSlow = std::numeric_limits<double>::infinity();
  const double tokens = p_hit * E_hit + (1 - p_hit) * E_miss;
  if (p_hit == 1) return kAlwaysSlow;  // Nothing ever falls back.
  if (T_p == 0) return E_hit >= tokens ? kAlwaysSlow : 0;
  const double all_hit = 1 + (1 - E_hit / tokens) / T_p;  // p_hit^(b*)
  if (all_hit >= 1) return 0;
  if (all_hit <= 0) return kAlwaysSlow;
  return p_hit == 0 ? 0 : std::log(all_hit) / std::log(p_hit);
}

std::vector<double> GeometricFanout(double a_p, double r, int K, double B) {
  FT_CHECK(K >= 0, "K {}", K);
  std::vector<double> F(K + 1);
  GeometricFanout(a_p, r, B, F);
  return F;
}

void GeometricFanout(double a_p, double r, double B, std::span<double> F) {
  CheckProbability(a_p);
  FT_CHECK(r > 0 && !F.empty() && B >= 0, "r {}, {} nodes, B {}", r, F.size(), B);
  const int K = static_cast<int>(F.size()) - 1;
  if (a_p == 1) {
    std::ranges::fill(F, 0);
    F[K] = B;
    return;
  }
  const double c = std::pow(a_p, 1 / (1 + r));
  double sum = 0;
  for (int k = 0; k <= K; ++k) {
    F[k] = std::pow(c, k) * (k < K ? 1 : std::pow(1 - a_p, -1 / (1 + r)));
    sum += F[k];
  }
  for (double& fanout : F) fanout *= B / sum;  // B / sum is the theorem's F_0.
}

double OptimalSlopeRatio(double a_p, int K, int k) {
  CheckProbability(a_p);
  FT_CHECK(a_p > 0 && k >= 0 && k <= K);
  return std::pow(a_p, -k) * (k < K ? 1 : 1 - a_p);
}

std::vector<double> SaguaroLaw(std::span<const double> p_draft, int F, double C) {
  FT_CHECK(F >= 0 && C >= 0 && C <= 1, "F {}, C {}", F, C);
  std::vector<double> law(p_draft.begin(), p_draft.end());
  for (const std::size_t token : TopTokens(p_draft, F)) law[token] *= C;
  const double Z = std::accumulate(law.begin(), law.end(), 0.0);
  if (Z == 0) return {p_draft.begin(), p_draft.end()};
  for (double& p : law) p /= Z;
  return law;
}

double ResidualHitRate(std::span<const double> p_target, std::span<const double> p_draft, int F,
                       double C) {
  FT_CHECK(p_target.size() == p_draft.size());
  const std::vector<double> law = SaguaroLaw(p_draft, F, C);
  double all = 0;
  for (std::size_t x = 0; x < law.size(); ++x) all += Residual(p_target[x], law[x]);
  if (all == 0) return 1;
  double in = 0;
  for (const std::size_t x : TopTokens(p_draft, F)) in += Residual(p_target[x], law[x]);
  return in / all;
}

double HitRateAfterRejection(std::span<const double> p_target, std::span<const double> p_draft,
                             int F, double C) {
  FT_CHECK(p_target.size() == p_draft.size());
  const std::vector<double> law = SaguaroLaw(p_draft, F, C);
  const std::vector<std::size_t> top = TopTokens(p_draft, std::size_t(F) + 1);
  double in_top = 0;  // Residual mass of top_{F+1}, and of its last token alone.
  for (const std::size_t x : top) in_top += Residual(p_target[x], law[x]);
  const double last = top.size() > std::size_t(F) ? Residual(p_target[top[F]], law[top[F]]) : 0.0;
  double rejected = 0;
  double hits = 0;
  for (std::size_t x = 0; x < law.size(); ++x) {
    // P(x drawn and rejected); a rejected token has no residual mass of its own.
    const double p = std::max(law[x] - p_target[x], 0.0);
    rejected += p;
    const bool cached = std::find(top.begin(), top.end(), x) != top.end();
    hits += p * (cached ? in_top : in_top - last);
  }
  return rejected == 0 ? 1 : hits / (rejected * rejected);  // Residual and rejected mass are equal.
}

SsdOverhead Overhead(int B, int K, int F, int V, double c_hat, int logit_bytes) {
  constexpr double kTokenBytes = 4;
  const double token_bytes = kTokenBytes + double(V) * logit_bytes;
  SsdOverhead overhead;
  overhead.draft_tokens_sd = double(B) * K;
  overhead.draft_tokens_ssd = overhead.draft_tokens_sd * (K + 1) * F;
  overhead.flops_sd = c_hat * overhead.draft_tokens_sd;
  overhead.flops_ssd = c_hat * overhead.draft_tokens_ssd;
  overhead.cache_bytes = overhead.draft_tokens_ssd * token_bytes;
  overhead.outcome_bytes = 2 * kTokenBytes * B;
  overhead.proposal_bytes = overhead.draft_tokens_sd * token_bytes;
  return overhead;
}

// NOLINTEND(readability-identifier-naming)

}  // namespace foretoken::theory
