#include "core/speculation/draft_law.h"

#include <algorithm>

#include "base/check.h"

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

void ProposalLaws::Clear() {
  places_.fill(Place{});
  tokens_.clear();
}

void ProposalLaws::SetListed(int node, std::span<const TokenProbability> law) {
  FT_CHECK(node >= 0 && node <= kMaxProposal && law.size() <= std::size_t{kMaxLawTokens});
  places_[node] = {.kind = DraftLaw::Kind::kListed,
                   .begin = static_cast<std::int32_t>(tokens_.size()),
                   .count = static_cast<std::int32_t>(law.size())};
  tokens_.insert(tokens_.end(), law.begin(), law.end());
}

DraftLaw ProposalLaws::at(int node) const {
  const Place& place = places_[node];
  return {place.kind, std::span(tokens_).subspan(place.begin, place.count)};
}

// NOLINTNEXTLINE(readability-identifier-naming)
void ApplySaguaro(std::span<TokenProbability> law, int F, double C) {
  const auto top = law.first(std::min(static_cast<std::size_t>(F), law.size()));
  double in = 0;   // A of A.3: the mass of the top F.
  double out = 0;  // B.
  for (const TokenProbability& entry : top) in += entry.probability;
  for (const TokenProbability& entry : law.subspan(top.size())) out += entry.probability;
  if (out == 0) return;
  const double scale = 1 / (C * in + out);
  for (TokenProbability& entry : law) {
    entry.probability = static_cast<float>(entry.probability * scale);
  }
  for (TokenProbability& entry : top) entry.probability *= static_cast<float>(C);
}

double MassWithout(std::span<const TokenProbability> law, std::span<const Token> taken) {
  double mass = 0;
  for (const TokenProbability& entry : law) {
    if (!Contains(taken, entry.token)) mass += entry.probability;
  }
  return mass;
}

Token DrawToken(std::span<const TokenProbability> law, std::span<const Token> taken, double u) {
  double left = u * MassWithout(law, taken);
  Token last = -1;
  for (const TokenProbability& entry : law) {
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
