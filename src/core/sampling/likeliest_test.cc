#include "core/sampling/likeliest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// By sorting everything.
std::vector<TokenProbability> Sorted(const std::vector<float>& probabilities, std::size_t most) {
  std::vector<TokenProbability> all;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] > 0) all.push_back({static_cast<Token>(i), probabilities[i]});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  all.resize(std::min(all.size(), most));
  double sum = 0;
  for (const auto& entry : all) sum += entry.probability;
  for (auto& entry : all) entry.probability = static_cast<float>(entry.probability / sum);
  return all;
}

void ExpectAsSorted(const std::vector<float>& probabilities, int most) {
  LikeliestSelection selection;
  const auto seen = selection.Select(probabilities, most);
  const auto expected = Sorted(probabilities, Size(most));
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i].token, expected[i].token) << i << " of " << most;
    ASSERT_NEAR(seen[i].probability, expected[i].probability, 1e-6);
  }
}

TEST(LikeliestSelection, IsAsSortingEverything) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  // From nearly even to nearly certain; with removed tokens and with ties.
  for (const double spread : {0.0, 0.01, 0.3, 3.0, 30.0}) {
    for (const int vocabulary : {1, 7, 300, 3000}) {
      std::vector<float> probabilities(vocabulary);
      double sum = 0;
      for (float& p : probabilities) {
        p = random() % 5 == 0 ? 0.0F : static_cast<float>(std::exp(spread * normal(random)));
        if (random() % 7 == 0) p = probabilities[0];
        sum += p;
      }
      for (float& p : probabilities) p = sum > 0 ? static_cast<float>(p / sum) : 0;
      for (const int most : {1, 2, 15, 256, 5000}) ExpectAsSorted(probabilities, most);
    }
  }
}

TEST(LikeliestSelection, OfExtremes) {
  ExpectAsSorted(std::vector<float>(50, 0.0F), 10);
  ExpectAsSorted({0, 1, 0}, 2);
  ExpectAsSorted({1e-44F, 1.0000001F, 1e-38F, 1e-44F}, 3);  // Denormal, and rounded beyond 1.
}

}  // namespace
}  // namespace foretoken
