#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace foretoken {

/// Counts of non-negative integers (nanoseconds, usually) in buckets no wider than 1/16 of their
/// value, so that quantiles are within 3 %. Fixed size, never allocates. Not thread-safe.
class Histogram {
 public:
  void Add(std::int64_t value) {
    const auto v = static_cast<std::uint64_t>(value < 0 ? 0 : value);
    ++counts_[Index(v)];
    ++count_;
    sum_ += v;
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t sum() const { return sum_; }
  double mean() const { return count_ == 0 ? 0 : static_cast<double>(sum_) / count_; }

  /// The middle of the bucket that holds quantile `q` in [0, 1]; 0 when empty.
  double Quantile(double q) const {
    if (count_ == 0) return 0;
    const double rank = q * static_cast<double>(count_ - 1);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i];
      if (static_cast<double>(below) > rank) {
        return (static_cast<double>(LowerEdge(i)) + static_cast<double>(LowerEdge(i + 1))) / 2;
      }
    }
    return 0;
  }

 private:
  static constexpr int kSubBits = 4;  // 16 buckets per power of two.

  static std::size_t Index(std::uint64_t value) {
    if (value < (1U << kSubBits)) return value;
    const int shift = std::bit_width(value) - 1 - kSubBits;
    return (static_cast<std::size_t>(shift + 1) << kSubBits) +
           ((value >> shift) - (1U << kSubBits));
  }
  static std::uint64_t LowerEdge(std::size_t index) {
    if (index < (1U << kSubBits)) return index;
    const std::size_t shift = (index >> kSubBits) - 1;
    return ((index & ((1U << kSubBits) - 1)) + (1U << kSubBits)) << shift;
  }

  std::array<std::uint64_t, (64 - kSubBits + 1) << kSubBits> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace foretoken
