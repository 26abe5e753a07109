#include "core/speculation/rejection.h"

#include <algorithm>

#include "core/sampling/softmax.h"

namespace foretoken {

double DraftProbability(const DraftDistribution& q, std::span<const Token> earlier, Token token,
                        std::size_t vocabulary) {
  switch (q.kind) {
    case DraftDistribution::Kind::kPoint:
      return 1;
    case DraftDistribution::Kind::kUniform:
      return 1.0 / static_cast<double>(vocabulary - earlier.size());
    case DraftDistribution::Kind::kListed:
      for (const TokenProbability& entry : q.listed) {
        if (entry.token == token) return entry.probability / MassWithout(q.listed, earlier);
      }
  }
  FT_CHECK(false, "the law that token {} was drawn from does not list it", token);
}

void ResidualDistribution::Reject(const DraftDistribution& q, std::span<const Token> earlier,
                                  Token token) {
  const auto subtract = [&](float* weight, double probability) {
    *weight = static_cast<float>(std::max(*weight - mass_ * probability, 0.0));
  };
  if (q.kind == DraftDistribution::Kind::kUniform) {
    const double probability = DraftProbability(q, earlier, token, weights_.size());
    for (float& weight : weights_) subtract(&weight, probability);
  } else if (q.kind == DraftDistribution::Kind::kListed) {
    const double scale = 1 / MassWithout(q.listed, earlier);
    for (const TokenProbability& entry : q.listed) {
      if (std::ranges::find(earlier, entry.token) == earlier.end()) {
        subtract(&weights_[entry.token], entry.probability * scale);
      }
    }
  }
  // Zero in exact arithmetic too: only p < q is ever rejected.
  weights_[token] = 0;
  mass_ = Sum(weights_);
}

}  // namespace foretoken
