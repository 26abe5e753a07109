#pragma once

#include <numeric>
#include <span>
#include <vector>

namespace foretoken {

/// For tests: runs a random program once for every sequence of choices that it can make, so that
/// its distribution is added up exactly instead of sampled.
class Enumerator {
 public:
  /// Stands for a uniform variable that is compared once: both answers are tried.
  struct Uniform {
    Enumerator* enumerator;
    bool operator<(double threshold) const {
      const double accept = threshold < 1 ? threshold : 1;
      return enumerator->Pick(std::vector<double>{accept, 1 - accept}) == 0;
    }
  };

  /// Calls `program()`, which makes its choices by Pick and Uniform, and after each run
  /// `result(probability of this run)`.
  template <typename Program, typename Result>
  void Run(Program&& program, Result&& result) {
    chosen_.clear();
    do {
      at_ = 0;
      probability_ = 1;
      weights_.clear();
      program();
      result(probability_);
    } while (Advance());
  }

  /// An index drawn with probability proportional to its weight.
  int Pick(const std::vector<double>& weights) {
    if (at_ == chosen_.size()) chosen_.push_back(NextPossible(weights, -1));
    const int choice = chosen_[at_++];
    weights_.push_back(weights);
    probability_ *= weights[choice] / std::accumulate(weights.begin(), weights.end(), 0.0);
    return choice;
  }

 private:
  static int NextPossible(const std::vector<double>& weights, int after) {
    for (int i = after + 1; i < std::ssize(weights); ++i) {
      if (weights[i] > 0) return i;
    }
    return -1;
  }

  // The next sequence in lexicographic order.
  bool Advance() {
    while (!chosen_.empty()) {
      chosen_.back() = NextPossible(weights_[chosen_.size() - 1], chosen_.back());
      if (chosen_.back() >= 0) return true;
      chosen_.pop_back();
    }
    return false;
  }

  std::vector<int> chosen_;
  std::vector<std::vector<double>> weights_;
  std::size_t at_ = 0;
  double probability_ = 1;
};

}  // namespace foretoken
