#include "speculation/lossy.h"

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
  return std::max(largest[static_cast<std::size_t>(k - 1)], largest[0] - rule.margin);
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
  if (rule.top_k >= 1 && rule.top_k <= kMostRelaxed) return {};
  return InvalidInput(fmt::format("{} is {}; it must be from 1 to {}", spell("lossy_top_k"),
                                  rule.top_k, kMostRelaxed),
                      "lossy_top_k");
}

float LeastAccepted(const LossyRule& rule, std::span<const float> p) {
  FT_CHECK(rule.kind != Lossy::kNone);
  const float least =
      rule.kind == Lossy::kTypical
          ? std::min(rule.epsilon, rule.delta * static_cast<float>(std::exp(-Entropy(p))))
          : RelaxedLeast(rule, p);
  return std::max(least, std::numeric_limits<float>::min());
}

int LikeliestChild(const Proposal& proposal, int node, std::span<const float> p, float least) {
  int best = 0;
  for (int child = node + 1; child <= proposal.size(); ++child) {
    if (proposal.parents[child - 1] != node) continue;
    const auto of = [&](int any) { return p[static_cast<std::size_t>(proposal.tokens[any - 1])]; };
    if (of(child) >= least && (best == 0 || of(child) > of(best))) best = child;
  }
  return best;
}

}  // namespace foretoken
