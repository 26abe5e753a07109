#pragma once

#include <array>
#include <span>

#include "core/draft/model/ranking.h"

namespace foretoken {

/// Fills in the log-odds of `ranking`, whose tokens have these noisy scores z / T + g at
/// temperature T (0: their logits). Where draft and target see the same noise, what a token's score
/// lacks of another's is made up by the error of the draft's logits alone, in logits and so T times
/// the difference of scores, whatever the draws were. The odds are those of errors of the scale of
/// one logit; how large they are for a pair of models a ChanceTable learns.
void SetLogOdds(std::span<const double> scores, float temperature, Ranking* ranking);

/// How often tokens that a draft ranked turned out to be the target's, by their log-odds. Decayed,
/// so it follows the text.
class ChanceTable {
 public:
  /// Before the first token the odds are believed, their logarithms times `sharpness`.
  explicit ChanceTable(double sharpness);

  /// P(the target's token is one of such log-odds | verification comes to the node).
  double Chance(float log_odds) const {
    const Bucket& bucket = buckets_[BucketOf(log_odds)];
    return bucket.hits / bucket.total;
  }
  /// After a visited node, of which the draft said `ranking`, came `token`.
  void Observe(const Ranking& ranking, Token token);

 private:
  struct Bucket {
    double hits = 0;
    double total = 0;
  };
  static constexpr int kBuckets = 20;
  static constexpr float kLeastLogOdds = -8;  // Below it all count as one.
  static constexpr float kPerNat = 1.25F;     // Buckets.

  static int BucketOf(float log_odds) {
    const float place = (log_odds - kLeastLogOdds) * kPerNat;
    return static_cast<int>(std::min(std::max(0.0F, place), kBuckets - 1.0F));  // NaN: the least.
  }

  std::array<Bucket, kBuckets> buckets_;
};

/// The chances of the first `most` tokens of `ranking`, none larger than the one before, so that a
/// better token never stands behind a worse one.
StaticVector<double, kMaxTreeWidth> ChancesOf(const ChanceTable& table, const Ranking& ranking,
                                              int most);

}  // namespace foretoken
