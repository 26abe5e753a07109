#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/static_vector.h"
#include "core/sampling/sampler.h"
#include "core/speculation/draft_distribution.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// What is asked of the draft after a node.
struct RankRequest {
  std::uint64_t root = 0;       ///< Position of the last committed token.
  std::span<const Token> path;  ///< From there to the node.
  int children = 1;             ///< Tokens to propose; 0 at a leaf.
  int candidates = 0;           ///< Likely bonus tokens, besides those.
  // The members below are for tokens that are drawn, for rejection verification.
  std::uint64_t seed = 0;
  int fanout = 0;        ///< F of Definition 14.
  double saguaro_c = 1;  ///< C of Definition 14.
  CacheOrder order = CacheOrder::kNoise;
};

/// Children, then candidates for the bonus token.
using DrawnTokens = StaticVector<Token, kMaxRanking>;

/// What the draft says after a node: children drawn from its distribution, and the tokens likeliest
/// to be the bonus token there. Holds scratch memory only.
class DraftDraw {
 public:
  /// `likeliest` are the draft's likeliest tokens as Sampler::LikeliestTokens gives them; becomes
  /// the distribution that the children were drawn from. Returns the children in the order of their
  /// draws, then the candidates, best first; fewer where the distribution has no more.
  DrawnTokens Draw(const RankRequest& request, std::span<TokenProbability> likeliest);

 private:
  struct Scored {
    Token token;
    double score;
  };
  /// From probabilities to scores by the noise that the bonus is chosen with: w_i / E_i with
  /// E_i = -log(u_i), which ranks as log(w_i) + g_i does, with a logarithm instead of three.
  void AddNoise(const RankRequest& request, std::span<const TokenProbability> distribution);

  std::vector<Scored> scored_;
};

}  // namespace foretoken
