#include "core/draft/recycle/top_tokens.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/sampling/softmax.h"

namespace foretoken {
namespace {

// The highest values that were offered, and what they are of.
class Highest {
 public:
  explicit Highest(std::span<Token> best) : best_(best) {
    FT_CHECK(!best.empty() && best.size() <= values_.size());
  }

  int count() const { return count_; }
  // What a value must exceed: so far -inf, or the lowest of those that there is room for.
  float threshold() const {
    return count_ == std::ssize(best_) ? values_[count_ - 1] : kMinusInfinity;
  }
  void Offer(float value, int index) {
    if (!(value > threshold())) return;  // NaN is not, either.
    int place = std::min(count_, Int(best_.size()) - 1);
    for (; place > 0 && values_[place - 1] < value; --place) {
      values_[place] = values_[place - 1];
      best_[place] = best_[place - 1];
    }
    values_[place] = value;
    best_[place] = index;
    count_ = std::min(count_ + 1, Int(best_.size()));
  }

 private:
  std::span<Token> best_;
  std::array<float, 64> values_{};
  int count_ = 0;
};

}  // namespace

int TopTokens(Logits row, int vocabulary, std::span<Token> best) {
  float least = kMinusInfinity;  // As many values as are wanted are that high.
  if (row.maxima != nullptr) {
    Highest groups(best);
    for (int g = 0; g < Logits::Groups(vocabulary); ++g) groups.Offer(row.maxima[g], g);
    least = groups.threshold();
  }
  Highest tokens(best);
  for (int begin = 0; begin < vocabulary; begin += kLogitGroup) {
    if (row.maxima != nullptr && row.maxima[begin / kLogitGroup] < least) continue;
    const int end = std::min(begin + kLogitGroup, vocabulary);
    for (int i = begin; i < end; ++i) tokens.Offer(row.values[i], i);
  }
  return tokens.count();
}

}  // namespace foretoken
