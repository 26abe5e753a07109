#pragma once

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/model/drafters/learned_draft.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Whether a model has layers beside its own that each predict one further token, as Meta's models
/// do that were trained to predict several: tensors model.extra_heads.N.* of a folder.
bool HasExtraHeads(const Checkpoint& model);

/// These as a drafter (FeatureSpec::Join::kLayerHeads) for the model, which is `target` as
/// OpenCheckpoint has read it, a Llama. They read what enters its last layer, and share its last
/// norm and its lm head. What else there is in the files is not looked at.
Result<LearnedDraft> ReadExtraHeads(Checkpoint model, const Checkpoint& target,
                                    const ModelConfig& target_config);

}  // namespace foretoken
