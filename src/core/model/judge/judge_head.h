#pragma once

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/tensor/half.h"

namespace foretoken {

/// What a head must belong to.
struct JudgedTarget {
  int hidden = 0;
  std::string_view tokenizer;  ///< Its fingerprint; empty where there is none.
};

/// A linear head that says of a token how right it is, from the target's state after the final norm
/// at the row that has the token as its input (judge decoding, Bachmann et al., 2025, Section 4).
/// Immutable: any number of threads may ask it.
class JudgeHead {
 public:
  /// Reads a folder as foretoken_train's `judge` writes it: config.json with `model_type` "judge",
  /// `hidden_size` and, where it is known, `tokenizer`; model.safetensors with `judge.weight`
  /// [hidden] and `judge.bias` [1]. Refuses one that is not for `target`.
  static Result<JudgeHead> Open(const std::filesystem::path& folder, const JudgedTarget& target);

  JudgeHead(std::vector<float> weight, float bias) : weight_(std::move(weight)), bias_(bias) {}

  int hidden() const { return weight_.size(); }
  /// sigmoid(w . h + b) of a state [hidden], summed in double and in order.
  double Approval(const BFloat16* state) const;

 private:
  std::vector<float> weight_;
  float bias_;
};

}  // namespace foretoken
