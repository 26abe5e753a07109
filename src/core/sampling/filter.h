#pragma once

#include <vector>

#include "foretoken/sampling.h"
#include "foretoken/types.h"

namespace foretoken {

/// top-k, top-p and min-p. In order of likelihood (equal logits by lower id) each keeps a leading
/// part of the vocabulary, so together they keep the shortest of three. Selects in linear time,
/// without sorting. Holds scratch memory only, allocated in the constructor.
class LogitFilter {
 public:
  explicit LogitFilter(int vocabulary);

  /// Sets the logits [vocabulary] of tokens that a filter removes to -inf. `logits` hold no NaN.
  /// At temperature 0 nothing is done, since no filter removes the most likely token.
  void Apply(const SamplingParams& params, float* logits);

 private:
  struct Entry {
    float logit;
    Token token;
    /// More likely first.
    bool operator<(const Entry& other) const {
      return logit > other.logit || (logit == other.logit && token < other.token);
    }
  };

  void Gather(const float* logits, float lowest);
  /// A logit that at least `k` tokens reach and, as a rule, not many more: the k-th largest of the
  /// maxima of groups.
  float LogitReachedBy(const float* logits, int k);
  double KeptMass(float max, float temperature) const;
  void GatherNucleus(const float* logits, float top_p, float max, float temperature, double total);
  void KeepTopK(const float* logits, int k);
  void KeepNucleus(float top_p, float max, float temperature, double total);

  int vocabulary_;
  std::vector<Entry> kept_;
  std::vector<float> group_maxima_;
};

}  // namespace foretoken
