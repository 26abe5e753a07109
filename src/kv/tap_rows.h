#pragma once

#include <cstdint>

#include "backend/taps.h"
#include "kv/kv_cache.h"

namespace foretoken {

/// What is kept of one sequence's positions (TapStore), read by position: that of the committed
/// ones is there. Borrows both.
struct TapRows {
  const TapStore* store = nullptr;  ///< Null: nothing is kept.
  const SequenceKv* sequence = nullptr;
  int first = 0;  ///< So many numbers of each are for the reader, the first; 0: all.

  int width() const { return first > 0 ? first : store->shape.width(); }
  /// [width], null where nothing is kept.
  const BFloat16* At(std::int32_t position) const {
    return store == nullptr ? nullptr : store->Row(sequence->SlotOf(position));
  }
};

}  // namespace foretoken
