#include "core/speculation/draft_distribution.h"

#include <algorithm>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

bool Contains(std::span<const Token> tokens, Token token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// The finaliser of SplitMix64: every input bit reaches every output bit.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

void DraftDistributions::Clear() {
  places_.fill(Place{});
  tokens_.clear();
}

void DraftDistributions::SetListed(int node, std::span<const TokenProbability> distribution) {
  FT_CHECK(node >= 0 && node <= kMaxProposal &&
           distribution.size() <= std::size_t{kMaxDistributionTokens});
  places_[node] = {.kind = DraftDistribution::Kind::kListed,
                   .begin = static_cast<std::int32_t>(tokens_.size()),
                   .count = static_cast<std::int32_t>(distribution.size())};
  tokens_.insert(tokens_.end(), distribution.begin(), distribution.end());
}

DraftDistribution DraftDistributions::at(int node) const {
  const Place& place = places_[node];
  return {place.kind, std::span(tokens_).subspan(place.begin, place.count)};
}

// NOLINTNEXTLINE(readability-identifier-naming)
void ApplySaguaro(std::span<TokenProbability> distribution, int F, double C) {
  const auto top = distribution.first(std::min(Size(F), distribution.size()));
  double in = 0;   // A of A.3: the mass of the top F.
  double out = 0;  // B.
  for (const TokenProbability& entry : top) in += entry.probability;
  for (const TokenProbability& entry : distribution.subspan(top.size())) out += entry.probability;
  if (out == 0) return;
  const double scale = 1 / (C * in + out);
  for (TokenProbability& entry : distribution) {
    entry.probability = static_cast<float>(entry.probability * scale);
  }
  for (TokenProbability& entry : top) entry.probability *= static_cast<float>(C);
}

double MassWithout(std::span<const TokenProbability> distribution, std::span<const Token> taken) {
  double mass = 0;
  for (const TokenProbability& entry : distribution) {
    if (!Contains(taken, entry.token)) mass += entry.probability;
  }
  return mass;
}

Token DrawToken(std::span<const TokenProbability> distribution, std::span<const Token> taken,
                double u) {
  double left = u * MassWithout(distribution, taken);
  Token last = -1;
  for (const TokenProbability& entry : distribution) {
    if (entry.probability == 0 || Contains(taken, entry.token)) continue;
    last = entry.token;
    left -= entry.probability;
    if (left < 0) break;
  }
  return last;
}

double DraftUniform(std::uint64_t seed, std::uint64_t root, std::span<const Token> path,
                    int index) {
  std::uint64_t hash = Mix(root + 0x9E3779B97F4A7C15U);
  for (const Token token : path) hash = Mix(hash ^ (static_cast<std::uint64_t>(token) + 1));
  return UnitInterval(PhiloxDraw(seed ^ hash, root + path.size(), static_cast<std::uint32_t>(index),
                                 NoisePurpose::kDrafting));
}

}  // namespace foretoken
