#pragma once

#include <memory>
#include <vector>

#include "core/model/model.h"

namespace foretoken {

/// The tokens of another vocabulary, in terms of a model's own.
struct Translation {
  std::vector<Token> read;  ///< By the other's tokens: what the model is given to read.
  /// By the other's tokens: the token whose logit is theirs; -1: they have none.
  std::vector<Token> said;
  Token bos = -1;  ///< The other's.
  std::vector<Token> eos;
};

/// `model` as one of the other vocabulary's tokens, for which it is taken everywhere: tokens are
/// translated before a pass and logits behind it. Where a token has none its logit is -inf.
std::unique_ptr<Model> Translate(std::unique_ptr<Model> model,
                                 std::shared_ptr<const Translation> translation);

}  // namespace foretoken
