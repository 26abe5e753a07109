#include "core/speculation/lossy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"

namespace foretoken {
namespace {

// H(p), in nats.
double Entropy(std::span<const float> p) {
  double entropy = 0;
  for (const float each : p) {
    if (each > 0) entropy -= static_cast<double>(each) * std::log(static_cast<double>(each));
  }
  return entropy;
}

float RelaxedLeast(const LossyRule& rule, std::span<const float> p) {
  std::array<float, kMostRelaxed> largest{};
  const auto k = std::min<std::ptrdiff_t>(rule.top_k, std::ssize(p));
  std::partial_sort_copy(p.begin(), p.end(), largest.begin(), largest.begin() + k,
                         std::greater<>());
  return std::max(largest[k - 1], largest[0] - rule.margin);
}

Status CheckJudge(const LossyRule& rule, FieldSpelling spell) {
  if (!(rule.approval >= 0 && rule.approval <= 1)) {
    return InvalidInput(
        fmt::format("{} is {}; it must be from 0 to 1", spell("lossy_approval"), rule.approval),
        "lossy_approval");
  }
  const bool judges = rule.kind == Lossy::kJudge;
  if (judges == !rule.judge.empty()) return {};
  return InvalidInput(
      judges ? fmt::format("the lossy rule judge needs a head: give its folder as {}",
                           spell("lossy_judge"))
             : fmt::format("{} is of the lossy rule judge, and another or none is chosen",
                           spell("lossy_judge")),
      "lossy_judge");
}

}  // namespace

Status CheckLossyRule(const LossyRule& rule, FieldSpelling spell) {
  const auto share = [&](std::string_view field, float value) -> Status {
    if (value > 0 && value <= 1) return {};
    return InvalidInput(
        fmt::format("{} is {}; it must be above 0 and at most 1", spell(field), value),
        std::string(field));
  };
  FT_RETURN_IF_ERROR(share("lossy_epsilon", rule.epsilon));
  FT_RETURN_IF_ERROR(share("lossy_delta", rule.delta));
  FT_RETURN_IF_ERROR(share("lossy_margin", rule.margin));
  if (rule.top_k < 1 || rule.top_k > kMostRelaxed) {
    return InvalidInput(fmt::format("{} is {}; it must be from 1 to {}", spell("lossy_top_k"),
                                    rule.top_k, kMostRelaxed),
                        "lossy_top_k");
  }
  return CheckJudge(rule, spell);
}

float LeastAccepted(const LossyRule& rule, std::span<const float> p) {
  FT_CHECK(rule.kind == Lossy::kTypical || rule.kind == Lossy::kTopKRelaxed);
  const float least =
      rule.kind == Lossy::kTypical
          ? std::min(rule.epsilon, rule.delta * static_cast<float>(std::exp(-Entropy(p))))
          : RelaxedLeast(rule, p);
  return std::max(least, std::numeric_limits<float>::min());
}

int LikeliestChild(const Proposal& proposal, int node, std::span<const float> p, float least) {
  return BestChild(proposal, node, [&](int child) {
    const float probability = p[proposal.tokens[child - 1]];
    return probability >= least ? probability : 0.0F;
  });
}

}  // namespace foretoken
