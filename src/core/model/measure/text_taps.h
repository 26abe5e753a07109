#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/taps.h"
#include "core/model/model.h"

namespace foretoken {

/// Reads texts to learn which states a model has at their positions. Borrows the model, on whose
/// device's thread it is used.
class TextTaps {
 public:
  /// Reads texts of at most `longest` tokens.
  TextTaps(Model* model, const TapShape& taps, int longest);

  /// [tokens, TapShape::width] of a text that stands alone; valid until the next call.
  std::span<const BFloat16> Read(std::span<const Token> tokens);

 private:
  Model* model_;
  std::vector<std::int32_t> blocks_;  // 0, 1, 2 ...: a position's slot is its number.
  KvStore kv_;
  ForwardBatch batch_;
};

}  // namespace foretoken
