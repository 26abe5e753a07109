#include "core/prediction/fanout_solver.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// Hands `budget` tokens out to `nodes` nodes, each to the one with the highest priority(node, F)
// for an F-th token.
template <typename Priority>
FanoutShape HandOut(int nodes, int budget, const Priority& priority) {
  FT_CHECK(budget >= 0, "a budget of {}", budget);
  FanoutShape shape;
  shape.at.resize(nodes);
  shape.spends_budget = true;
  for (int left = std::min(budget, nodes * kMaxFanout); left > 0; --left) {
    int best = -1;
    double highest = 0;
    for (int node = 0; node < nodes; ++node) {
      if (shape.at[node] == kMaxFanout) continue;
      const double value = priority(node, shape.at[node] + 1);
      if (best >= 0 && value <= highest) continue;
      best = node;
      highest = value;
    }
    ++shape.at[best];
  }
  return shape;
}

}  // namespace

NodeDistribution OutcomeNodes(std::span<const double> acceptance, int lookahead) {
  FT_CHECK(!acceptance.empty() && lookahead >= 0 && lookahead <= kMaxProposal);
  NodeDistribution nodes;
  double reached = 1;  // P(the first k tokens are accepted)
  for (int k = 0; k < lookahead; ++k) {
    const double a = acceptance[std::min<std::size_t>(k, acceptance.size() - 1)];
    nodes.push_back(reached * (1 - a));
    reached *= a;
  }
  nodes.push_back(reached);
  return nodes;
}

double ExpectedTokens(const NodeDistribution& nodes) {
  double tokens = 1;
  for (std::size_t k = 1; k < nodes.size(); ++k) tokens += nodes[k] * double(k);
  return tokens;
}

FanoutShape SolveFanout(const NodeDistribution& nodes, const HitCurves& curves, int budget) {
  const int proposal = std::ssize(nodes) - 1;
  return HandOut(proposal + 1, budget, [&](int node, int fanout) {
    return nodes[node] * curves.at(node, proposal).gain(fanout);
  });
}

void GeometricFanout(double a_p, double r, double B, std::span<double> F) {
  FT_CHECK(a_p >= 0 && a_p <= 1, "{} is not a probability", a_p);
  FT_CHECK(r > 0 && !F.empty() && B >= 0, "r {}, {} nodes, B {}", r, F.size(), B);
  const std::size_t K = F.size() - 1;
  if (a_p == 1) {
    std::ranges::fill(F, 0);
    F[K] = B;
    return;
  }
  const double c = std::pow(a_p, 1 / (1 + r));
  double sum = 0;
  for (std::size_t k = 0; k <= K; ++k) {
    F[k] = std::pow(c, k) * (k < K ? 1 : std::pow(1 - a_p, -1 / (1 + r)));
    sum += F[k];
  }
  for (double& fanout : F) fanout *= B / sum;  // B / sum is the theorem's F_0.
}

FanoutShape GeometricFanoutShape(double a_p, double r, int lookahead, int budget) {
  NodeDistribution real;
  real.resize(Size(lookahead) + 1);
  GeometricFanout(a_p, r, budget, std::span(real.begin(), real.end()));
  return HandOut(lookahead + 1, budget,
                 [&real](int node, int fanout) { return real[node] - fanout; });
}

}  // namespace foretoken
