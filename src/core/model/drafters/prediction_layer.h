#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/model/drafters/learned_draft.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// A layer that guesses further tokens of such a model, described: a projection of token and
/// feature before the model's last layer with attention. An error, in the name of `where`, where
/// there is none.
Result<ModelConfig> PredictionLayerOf(const ModelConfig& model, const std::string& where);

/// Whether a model, as Checkpoint::Open has read it, has a layer that guesses further tokens beside
/// its own: tensors `mtp.*` of a folder or those of a layer behind its own, `blk.N.nextn.*` of a
/// GGUF file.
bool HasPredictionLayer(const Checkpoint& model);

/// Reads such a layer as a drafter for the model, which is `target` as OpenCheckpoint has read it:
/// of Qwen3-Next, Qwen3.5, DeepSeek-V3, GLM-4.5 and MiMo; of several such layers the first. It
/// reads the state after the final norm, and leaves such a one. What else there is in the files is
/// not looked at. A layer that is not whole is refused in a sentence.
Result<LearnedDraft> ReadPredictionLayer(Checkpoint model, const Checkpoint& target,
                                         const ModelConfig& target_config);

/// The same of the folder or GGUF file at `path`, which mostly is the target's.
Result<LearnedDraft> OpenPredictionLayer(const std::filesystem::path& path,
                                         const Checkpoint& target,
                                         const ModelConfig& target_config);

}  // namespace foretoken
