#include "core/backend/cpu/noisy_top.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/backend/noise.h"

namespace foretoken::cpu {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Inserts unless `best` is full of better ones. Tokens come in ascending order, so an equal score
// ranks behind.
void Insert(Candidate candidate, std::span<Candidate> best, std::size_t* count) {
  if (*count == best.size()) {
    if (!(candidate.score > best[*count - 1].score)) return;
    --*count;
  }
  std::size_t at = (*count)++;
  for (; at > 0 && candidate.score > best[at - 1].score; --at) best[at] = best[at - 1];
  best[at] = candidate;
}

// A score that `count` tokens reach, so that no token below it is among the best: that of the
// likeliest of one group, the one with the largest logit if that is known. -inf where there are too
// few.
double FirstBound(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                  std::span<Candidate> scratch) {
  Token begin = 0;
  if (logits.maxima != nullptr) {
    const float* const end = logits.maxima + Logits::Groups(vocabulary);
    begin = kLogitGroup * static_cast<Token>(std::max_element(logits.maxima, end) - logits.maxima);
  }
  std::size_t count = 0;
  for (Token token = begin; token < std::min(vocabulary, begin + kLogitGroup); ++token) {
    const float logit = logits.values[token];
    if (logit > -std::numeric_limits<float>::infinity()) Insert({token, logit}, scratch, &count);
  }
  if (count < scratch.size()) return kMinusInfinity;
  double bound = -kMinusInfinity;
  for (const Candidate& likely : scratch) {
    const std::uint32_t draw =
        PhiloxDraw(noise.seed, noise.position, static_cast<std::uint32_t>(likely.token),
                   NoisePurpose::kSampling);
    bound = std::min(bound, NoisyScore(logits.values[likely.token], temperature, draw));
  }
  return bound;
}

// The token of the largest logit, by the maxima of groups that are known; returns how many: 0 where
// all are -inf or NaN.
std::size_t Likeliest(Logits logits, int vocabulary, Candidate* best) {
  const int groups = Logits::Groups(vocabulary);
  float most = -std::numeric_limits<float>::infinity();
  Token token = -1;
  for (int group = 0; group < groups; ++group) {
    if (!(logits.maxima[group] > most)) continue;
    most = logits.maxima[group];
    token = group * static_cast<Token>(kLogitGroup);
  }
  if (token < 0) return 0;
  while (logits.values[token] != most) ++token;
  *best = {token, logits.values[token]};
  return 1;
}

}  // namespace

std::size_t NoisyTop(const Kernels& kernels, Logits logits, int vocabulary, float temperature,
                     NoiseKey noise, std::span<Candidate> best, std::vector<NoiseHit>* hits) {
  constexpr int kFirstScan = kNoiseGroup;
  constexpr int kLargestScan = 4096;
  if (best.empty()) return 0;
  if (temperature == 0.0F && best.size() == 1 && logits.maxima != nullptr) {
    return Likeliest(logits, vocabulary, best.data());
  }
  hits->resize(kLargestScan);
  NoiseScan scan{logits.values, logits.maxima, 0, 0, noise.seed, noise.position, 0, 0};
  const bool noisy = temperature != 0.0F;
  // Below this 1 / T leaves the range of float; every token is then looked at.
  const bool bounded = !noisy || temperature > 1e-30F;
  scan.inverse_temperature = noisy ? (bounded ? 1.0F / temperature : 1.0F) : 0.0F;
  const double first = FirstBound(logits, vocabulary, temperature, noise, best);
  std::size_t count = 0;
  for (int size = kFirstScan; scan.end < vocabulary; size = std::min(2 * size, kLargestScan)) {
    scan.begin = scan.end;
    scan.end = std::min(vocabulary, scan.begin + size);
    const double worst = count == best.size() ? best[count - 1].score : first;
    scan.threshold = -std::numeric_limits<float>::infinity();
    if (bounded && worst > kMinusInfinity) {
      const double margin = noisy ? 1e-3 + 1e-6 * std::abs(worst) : 0.0;
      scan.threshold = static_cast<float>(worst - margin);
    }
    const int found = kernels.scan_noise(scan, hits->data());
    for (int i = 0; i < found; ++i) {
      const NoiseHit hit = (*hits)[i];
      const double score = NoisyScore(logits.values[hit.token], temperature, hit.draw);
      if (score > kMinusInfinity) Insert({hit.token, score}, best, &count);
    }
  }
  return count;
}

}  // namespace foretoken::cpu
