#pragma once

#include <cstdint>

#include "core/backend/taps.h"
#include "core/kv/kv_cache.h"

namespace foretoken {

/// What one reader reads of what is kept of a position: so many numbers from one on.
struct TapPart {
  int first = 0;
  int width = 0;  ///< 0: all that there are.
};

/// Makes `kept` keep what `reader` reads too, in one piece, perhaps where others read: there.
TapPart AddTaps(const TapShape& reader, TapShape* kept);

/// What is kept of one sequence's positions (TapStore), read by position: that of the committed
/// ones is there. Borrows both.
struct TapRows {
  const TapStore* store = nullptr;  ///< Null: nothing is kept.
  const SequenceKv* sequence = nullptr;
  TapPart part;  ///< For the reader.

  int width() const { return part.width > 0 ? part.width : store->shape.width(); }
  /// [width], null where nothing is kept.
  const BFloat16* At(std::int32_t position) const {
    if (store == nullptr) return nullptr;
    return store->Row(sequence->SlotOf(position)) + part.first;
  }
};

}  // namespace foretoken
