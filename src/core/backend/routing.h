#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"

namespace foretoken {

/// The indices of the largest `scores`, as many as `largest` has room for: the largest first, equal
/// ones by lower index, those that are no number last.
void ChooseLargest(std::span<const float> scores, std::span<std::int32_t> largest);

/// How a backend computes what routing needs, of `count` numbers; `out` may be `x`.
struct RoutingArithmetic {
  void (*softmax)(const float* x, int count, float* out);
  void (*sigmoids)(const float* x, int count, float* out);
};

/// Backend::Route in the arithmetic of any backend. Owns the room that it takes.
class Router {
 public:
  void Route(const RoutingArithmetic& arithmetic, const Routing& routing, const float* scores,
             const float* choice_bias, int rows, std::int32_t* experts, float* weights);

 private:
  void LeaveOutGroups(const Routing& routing);

  std::vector<float> values_;  // [experts]: what those of a row may weigh.
  std::vector<float> by_;      // [experts]: what they are chosen by.
  std::vector<float> group_scores_;
  std::vector<std::int32_t> groups_;  // The chosen ones.
};

}  // namespace foretoken
