#pragma once

#include <span>
#include <vector>

#include "core/model/model.h"

namespace foretoken {

/// A text of which a model's choices are asked for.
struct AskedText {
  std::vector<Token> tokens;
  int first = 1;  ///< Before this token and each behind it, from 1 on.

  int asked() const { return std::ssize(tokens) - first; }
};

/// Reads texts as they are (teacher forcing) and says of every asked token which one the model
/// holds likeliest in its place, of all texts one behind the other. Equal logits: the first. Driven
/// by the owner thread of the model's backend. Memory for the longest text, and for the logits of
/// one pass.
std::vector<Token> LikeliestTokens(Model* model, std::span<const AskedText> texts);

}  // namespace foretoken
