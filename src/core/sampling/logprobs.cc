#include "core/sampling/logprobs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/sampling/softmax.h"

namespace foretoken {

bool ComputeLogprobs(const float* logits, int vocabulary, Token chosen, int top,
                     std::vector<TokenLogprob>* out) {
  FT_CHECK(chosen >= 0 && chosen < vocabulary, "token {} of {}", chosen, vocabulary);
  const float max = MaxLogit(logits, vocabulary);
  const double log_total = std::log(SumWeights(logits, vocabulary, max, 1.0F));
  const auto logprob = [&](Token token) {
    const float logit = logits[token];
    if (!(logit > kMinusInfinity)) return kMinusInfinity;
    if (std::isinf(max)) return logit == max ? 0.0F : kMinusInfinity;
    return static_cast<float>(double{logit} - double{max} - log_total);
  };

  out->clear();
  out->push_back({chosen, logprob(chosen)});
  // Insertion below: tokens come in ascending order, so an equal logit stays behind the earlier.
  const std::size_t limit = 1 + Size(std::clamp(top, 0, vocabulary));
  float lowest = kMinusInfinity;
  for (Token token = 0; token < vocabulary && limit > 1; ++token) {
    if (!(logits[token] > lowest)) continue;
    if (out->size() == limit) out->pop_back();
    auto place = out->end();
    while (place != out->begin() + 1 && logits[token] > logits[(place - 1)->token]) --place;
    out->insert(place, {token, 0.0F});
    if (out->size() == limit) lowest = logits[out->back().token];
  }
  for (std::size_t i = 1; i < out->size(); ++i) (*out)[i].logprob = logprob((*out)[i].token);
  return std::isfinite(max);
}

}  // namespace foretoken
