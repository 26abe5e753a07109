#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace foretoken {

/// What rows of a draft that reads features have left: the features of the rows behind them, until
/// the target's are there. By a number that the owner gives a row. Of other drafts empty.
class LeftStates {
 public:
  LeftStates() = default;
  LeftStates(int hidden, int rows)
      : hidden_(static_cast<std::size_t>(hidden)),
        states_(hidden_ * static_cast<std::size_t>(rows)) {}

  bool there() const { return hidden_ > 0; }
  /// [hidden]; null where there is nothing.
  const float* Of(int row) const {
    return there() ? states_.data() + hidden_ * static_cast<std::size_t>(row) : nullptr;
  }
  void Keep(int row, const float* state) {
    if (there())
      std::copy_n(state, hidden_, states_.data() + hidden_ * static_cast<std::size_t>(row));
  }

 private:
  std::size_t hidden_ = 0;
  std::vector<float> states_;  // [rows, hidden]
};

}  // namespace foretoken
