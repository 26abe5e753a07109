#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch_plan.h"
#include "core/tensor/buffer.h"
#include "core/tensor/half.h"

namespace foretoken {

/// Which states of each position passes keep, for drafters that read them.
struct TapShape {
  /// What the final norm makes of the residual stream: what the lm head reads.
  static constexpr int kFinalState = -1;

  /// In the order in which they are kept: the residual stream as it enters a layer, by the layer's
  /// number; as it leaves the last one, by the number of layers; or kFinalState.
  std::vector<int> points;
  int hidden = 0;  ///< Numbers of each.

  int width() const { return std::ssize(points) * hidden; }
  bool operator==(const TapShape&) const = default;
};

/// These states, in BF16. They lie by slots as keys and values do, and move with them: so they are
/// there for every position whose keys are, be it found in the prefix cache or computed again.
struct TapStore {
  TapShape shape;
  Buffer rows;  ///< [slots, width]

  static TapStore Allocate(const TapShape& shape, std::int64_t slots);
  static std::size_t Bytes(const TapShape& shape, std::int64_t slots);

  BFloat16* Row(std::int32_t slot) { return rows.as<BFloat16>() + Offset(slot); }
  const BFloat16* Row(std::int32_t slot) const { return rows.as<BFloat16>() + Offset(slot); }
  bool Has(int point) const;
  /// Keeps the states [places, hidden] that rows have at `point`, which is one of the shape's.
  void Keep(int point, std::span<const RowPlace> places, const float* states);

 private:
  std::int64_t Offset(std::int32_t slot) const { return std::int64_t{slot} * shape.width(); }
};

}  // namespace foretoken
