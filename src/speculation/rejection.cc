#include "speculation/rejection.h"

#include <algorithm>

#include "sampling/softmax.h"

namespace foretoken {
namespace {

bool Contains(std::span<const Token> tokens, Token token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// What is left of a listed law's mass without the tokens in `earlier`.
double ListedMass(std::span<const TokenProbability> listed, std::span<const Token> earlier) {
  double mass = 0;
  for (const TokenProbability& entry : listed) {
    if (!Contains(earlier, entry.token)) mass += entry.probability;
  }
  return mass;
}

}  // namespace

double DraftProbability(const DraftLaw& q, std::span<const Token> earlier, Token token,
                        std::size_t vocabulary) {
  switch (q.kind) {
    case DraftLaw::Kind::kPoint:
      return 1;
    case DraftLaw::Kind::kUniform:
      return 1.0 / static_cast<double>(vocabulary - earlier.size());
    case DraftLaw::Kind::kListed:
      for (const TokenProbability& entry : q.listed) {
        if (entry.token == token) return entry.probability / ListedMass(q.listed, earlier);
      }
  }
  FT_CHECK(false, "the law that token {} was drawn from does not list it", token);
}

void ResidualLaw::Reject(const DraftLaw& q, std::span<const Token> earlier, Token token) {
  const auto subtract = [&](float* weight, double probability) {
    *weight = static_cast<float>(std::max(*weight - mass_ * probability, 0.0));
  };
  if (q.kind == DraftLaw::Kind::kUniform) {
    const double probability = DraftProbability(q, earlier, token, weights_.size());
    for (float& weight : weights_) subtract(&weight, probability);
  } else if (q.kind == DraftLaw::Kind::kListed) {
    const double scale = 1 / ListedMass(q.listed, earlier);
    for (const TokenProbability& entry : q.listed) {
      if (!Contains(earlier, entry.token)) {
        subtract(&weights_[entry.token], entry.probability * scale);
      }
    }
  }
  // Zero in exact arithmetic too: only p < q is ever rejected.
  weights_[token] = 0;
  mass_ = Sum(weights_);
}

}  // namespace foretoken
