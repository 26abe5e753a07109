#include "core/backend/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace foretoken {
namespace {

bool UsesSigmoids(const Routing& routing) {
  return routing.weights == Routing::Weights::kSigmoids ||
         routing.weights == Routing::Weights::kSigmoidsOfSum;
}

// What a group is chosen by.
float ScoreOf(std::span<const float> group, Routing::GroupScore kind) {
  if (kind == Routing::GroupScore::kLargest || group.size() == 1) {
    std::int32_t best = 0;
    ChooseLargest(group, {&best, 1});
    return group[best];
  }
  std::int32_t best[2];
  ChooseLargest(group, best);
  return group[best[0]] + group[best[1]];
}

}  // namespace

void ChooseLargest(std::span<const float> scores, std::span<std::int32_t> largest) {
  const auto above = [&](std::int32_t a, std::int32_t b) {
    const float score = scores[a];
    const float other = scores[b];
    return score > other || (std::isnan(other) && !std::isnan(score));
  };
  std::size_t count = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(scores.size()); ++i) {
    if (count == largest.size()) {
      if (!above(i, largest[count - 1])) continue;
      --count;
    }
    std::size_t at = count++;
    for (; at > 0 && above(i, largest[at - 1]); --at) largest[at] = largest[at - 1];
    largest[at] = i;
  }
}

// Experts of groups that are not chosen come behind all others.
void Router::LeaveOutGroups(const Routing& routing) {
  const std::size_t groups = routing.groups;
  const std::size_t width = by_.size() / groups;
  group_scores_.resize(groups);
  groups_.resize(routing.chosen_groups);
  for (std::size_t group = 0; group < groups; ++group) {
    group_scores_[group] =
        ScoreOf(std::span(by_).subspan(group * width, width), routing.group_score);
  }
  ChooseLargest(group_scores_, groups_);
  for (std::size_t group = 0; group < groups; ++group) {
    if (std::ranges::find(groups_, static_cast<std::int32_t>(group)) != groups_.end()) continue;
    std::ranges::fill(std::span(by_).subspan(group * width, width),
                      -std::numeric_limits<float>::infinity());
  }
}

void Router::Route(const RoutingArithmetic& arithmetic, const Routing& routing, const float* scores,
                   const float* choice_bias, int rows, std::int32_t* experts, float* weights) {
  FT_CHECK(routing.experts % routing.groups == 0, "{} experts in {} groups", routing.experts,
           routing.groups);
  const std::size_t all = routing.experts;
  const std::size_t chosen = routing.chosen;
  const bool sigmoids = UsesSigmoids(routing);
  values_.resize(all);
  by_.resize(all);
  for (int row = 0; row < rows; ++row, scores += all, experts += chosen, weights += chosen) {
    if (sigmoids) arithmetic.sigmoids(scores, routing.experts, values_.data());
    std::copy_n(sigmoids ? values_.data() : scores, all, by_.begin());
    for (std::size_t i = 0; choice_bias != nullptr && i < all; ++i) by_[i] += choice_bias[i];
    if (routing.chosen_groups < routing.groups) LeaveOutGroups(routing);
    ChooseLargest(by_, {experts, chosen});
    if (routing.weights == Routing::Weights::kSoftmaxOfAll) {
      arithmetic.softmax(scores, routing.experts, values_.data());
    }
    const bool scored = routing.weights == Routing::Weights::kSoftmaxOfChosen;
    const float* const from = scored ? scores : values_.data();
    for (std::size_t i = 0; i < chosen; ++i) weights[i] = from[experts[i]];
    if (scored) arithmetic.softmax(weights, routing.chosen, weights);
    float divisor = 1;
    if (routing.weights == Routing::Weights::kSigmoidsOfSum) {
      divisor = 0;
      for (std::size_t i = 0; i < chosen; ++i) divisor += weights[i];
    }
    for (std::size_t i = 0; i < chosen; ++i) weights[i] = weights[i] / divisor * routing.factor;
  }
}

}  // namespace foretoken
