#include "core/draft/model/chance_table.h"

#include <cmath>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// Tokens that a bucket's first chance is worth, and that it remembers.
constexpr double kFirstWeight = 8;
constexpr double kMemory = 500;

}  // namespace

void SetLogOdds(std::span<const double> scores, float temperature, Ranking* ranking) {
  constexpr double kLeast = 1e-6;  // Keeps the odds finite.
  const double scale = temperature > 0 ? temperature : 1;
  std::array<double, kMaxRanking> weights;
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    weights[i] = std::exp(scale * (scores[i] - scores[0]));
    sum += weights[i];
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    (*ranking)[i].log_odds = static_cast<float>(
        std::log(std::max(weights[i], kLeast) / std::max(sum - weights[i], kLeast)));
  }
}

ChanceTable::ChanceTable(double sharpness) {
  for (int i = 0; i < kBuckets; ++i) {
    const double log_odds = kLeastLogOdds + (i + 0.5) / kPerNat;
    buckets_[i] = {.hits = kFirstWeight / (1 + std::exp(-sharpness * log_odds)),
                   .total = kFirstWeight};
  }
}

void ChanceTable::Observe(const Ranking& ranking, Token token) {
  constexpr double kKept = 1 - 1 / kMemory;
  for (const RankedToken& ranked : ranking) {
    Bucket& bucket = buckets_[BucketOf(ranked.log_odds)];
    bucket.hits = kKept * bucket.hits + (ranked.token == token ? 1 : 0);
    bucket.total = kKept * bucket.total + 1;
  }
}

StaticVector<double, kMaxTreeWidth> ChancesOf(const ChanceTable& table, const Ranking& ranking,
                                              int most) {
  StaticVector<double, kMaxTreeWidth> chances;
  double before = 1;
  for (int i = 0; i < std::min(most, Int(ranking.size())); ++i) {
    before = std::min(before, table.Chance(ranking[i].log_odds));
    chances.push_back(before);
  }
  return chances;
}

}  // namespace foretoken
