#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers/philox.h"
#include "core/sampling/likeliest.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// The most tokens a listed distribution has: a draft keeps its likeliest ones and renormalises.
/// Exact all the same, since verification is told the distribution that was drawn from, whatever it
/// is.
inline constexpr int kMaxDistributionTokens = 256;

/// q: what the children of a proposal node were drawn from, one after the other and without
/// replacement, after every transform (temperature, filters, truncation, Saguaro). Borrowed.
struct DraftDistribution {
  enum class Kind : std::uint8_t {
    kPoint,    ///< Nothing was drawn: each child is a point mass (n-gram, retrieval, top tokens).
    kUniform,  ///< Every token of the vocabulary is equally likely.
    kListed,   ///< Distinct tokens and their probabilities, which sum to 1; no other is possible.
  };
  Kind kind = Kind::kPoint;
  std::span<const TokenProbability> listed;
};

/// The distributions of a proposal's nodes, by parent; kPoint where none was set. Beside the
/// proposal, not in it, so that shared-noise verification carries none. Allocates until it has
/// grown.
class DraftDistributions {
 public:
  void Clear();
  void SetUniform(int node) { places_[node].kind = DraftDistribution::Kind::kUniform; }
  /// Copies a distribution of at most kMaxDistributionTokens tokens in place of the node's earlier.
  void SetListed(int node, std::span<const TokenProbability> distribution);
  DraftDistribution at(int node) const;

 private:
  struct Place {
    DraftDistribution::Kind kind = DraftDistribution::Kind::kPoint;
    std::int32_t begin = 0;
    std::int32_t count = 0;
  };
  std::array<Place, kMaxProposal + 1> places_{};
  std::vector<TokenProbability> tokens_;
};

/// Definition 14, sigma_{F,C}: multiplies the first F of `distribution`, whose tokens come
/// likeliest first, by C and normalises. Where nothing lies outside those F the distribution stays
/// as it is. The result is no longer sorted.
// NOLINTNEXTLINE(readability-identifier-naming): the paper's symbols.
void ApplySaguaro(std::span<TokenProbability> distribution, int F, double C);

/// The mass of `distribution` without the tokens in `taken`.
double MassWithout(std::span<const TokenProbability> distribution, std::span<const Token> taken);

/// Draws from `distribution` without the tokens in `taken`, by inversion of `u` in (0, 1); -1 where
/// nothing is left.
Token DrawToken(std::span<const TokenProbability> distribution, std::span<const Token> taken,
                double u);

/// The uniform variable of a draft's `index`-th child after `path`, the tokens that follow the
/// root at position `root`. Different paths have independent ones, so what happens on one branch
/// says nothing about the draws on another.
double DraftUniform(std::uint64_t seed, std::uint64_t root, std::span<const Token> path, int index);

/// The uniform variable that decides on the `index`-th child proposed for `position`.
inline double AcceptanceUniform(std::uint64_t seed, std::uint64_t position, int index) {
  return UnitInterval(
      PhiloxDraw(seed, position, static_cast<std::uint32_t>(index), NoisePurpose::kAcceptance));
}

}  // namespace foretoken
