#pragma once

#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

// What folders and GGUF files of recurrent models keep differently (Family::arrange_for_gguf):
// files have what heads forget by as it is used, negative, not as its logarithm.

/// Folders of Qwen3-Next have queries, keys, values and gates by key heads, files each by itself.
void ArrangeQwen3NextForGguf(Checkpoint* checkpoint, const ModelConfig& config);
/// Value heads of a key head are neighbours in folders of Qwen3.5; in files they are as many apart
/// as there are key heads.
void ArrangeQwen35ForGguf(Checkpoint* checkpoint, const ModelConfig& config);

}  // namespace foretoken
