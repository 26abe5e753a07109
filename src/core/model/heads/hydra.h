#pragma once

#include "base/result.h"
#include "core/model/config/config_fields.h"
#include "core/model/drafters/learned_draft.h"

namespace foretoken {

/// Whether a folder has Hydra's heads alone, by its config.json, which `json` is, and not a whole
/// model beside them.
bool IsHydra(const Checkpoint& folder, const Json& json);

/// A drafter of such heads (FeatureSpec::Join::kSequentialHeads), for a target as OpenCheckpoint
/// has read it: those that a multi-layer perceptron makes, with the layer of Hydra++ before them or
/// without it. Other architectures are refused in a sentence. How many heads there are the tensors
/// say.
Result<LearnedDraft> ReadHydra(Checkpoint folder, const Json& json, const Checkpoint& target,
                               const ModelConfig& target_config);

}  // namespace foretoken
