#pragma once

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Gives `draft` what it has not of its own and `config` needs: the target's embeddings, and its
/// head where it drafts all of the target's tokens.
Status ShareTables(const Checkpoint& target, const ModelConfig& target_config,
                   const ModelConfig& config, Checkpoint* draft);

/// The target's embeddings alone, to a draft as wide as the target that has none.
void ShareEmbeddings(const Checkpoint& target, Checkpoint* draft);
/// The target's final norm, to a draft that has none.
void ShareOutputNorm(const Checkpoint& target, Checkpoint* draft);

}  // namespace foretoken
