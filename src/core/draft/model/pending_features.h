#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/kv/tap_rows.h"

namespace foretoken {

/// The features of a sequence's positions whose rows a draft has yet to compute, in the order of
/// the positions. Empty for drafts that read none.
class PendingFeatures {
 public:
  PendingFeatures() = default;
  explicit PendingFeatures(int width) : width_(width) {}

  /// The position behind the last one whose feature is there.
  std::int32_t end() const {
    return first_ + (width_ == 0 ? 0 : static_cast<std::int32_t>(numbers_.size() / width_));
  }
  /// The next numbers; several calls may make up one position's.
  void Append(std::span<const BFloat16> numbers) {
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }
  /// Appends the features of the positions up to `end` that are not there yet.
  void Append(const TapRows& taps, std::int32_t end) {
    for (std::int32_t position = this->end(); position < end; ++position) {
      Append({taps.At(position), width_});
    }
  }
  /// What lies below is computed.
  void DropBelow(std::int32_t position) {
    const std::size_t rows = std::max(0, std::min(position, end()) - first_);
    numbers_.erase(numbers_.begin(), numbers_.begin() + static_cast<std::ptrdiff_t>(rows * width_));
    first_ += static_cast<std::int32_t>(rows);
  }
  /// [width], valid until the next change; null where there are none at all.
  const BFloat16* At(std::int32_t position) const {
    if (width_ == 0) return nullptr;
    FT_CHECK(position >= first_ && position < end(), "position {}", position);
    return numbers_.data() + Size(position - first_) * width_;
  }

 private:
  std::size_t width_ = 0;
  std::int32_t first_ = 0;
  std::vector<BFloat16> numbers_;  // [positions from first_ on, width], the last perhaps in part.
};

}  // namespace foretoken
