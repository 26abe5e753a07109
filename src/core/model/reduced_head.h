#pragma once

#include <span>

#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Makes a model one that says only `tokens` of its own, in their order as tokens 0, 1, ...: its lm
/// head has their rows alone, and what else makes logits of its tokens. It reads all tokens as
/// before, so where the head was the embedding table, it has both from now on. `checkpoint`, whose
/// rows are gathered when the head is read, is null of random weights. For models that say all
/// tokens that they read.
void ReduceHead(std::span<const Token> tokens, ModelConfig* config, Checkpoint* checkpoint);

}  // namespace foretoken
