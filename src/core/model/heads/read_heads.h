#pragma once

#include "base/result.h"
#include "core/model/config/config_fields.h"
#include "core/model/config/model_config.h"
#include "core/model/drafters/learned_draft.h"
#include "core/weights/checkpoint.h"

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

/// Whether a folder has Medusa's heads alone, by its config.json, which `json` is, and not a whole
/// model beside them.
bool IsMedusa(const Checkpoint& folder, const Json& json);

/// A drafter of such heads (FeatureSpec::Join::kHeads) for a target of this configuration. How many
/// there are its tensors say, since config.json may not.
Result<LearnedDraft> ReadMedusa(Checkpoint folder, const Json& json, const ModelConfig& target);

/// The same of heads that lie beside a whole model (Medusa-2), which `target` describes: tensors
/// medusa_head.* or medusa_lm_head.* among the model's, or the file that heads alone have, in the
/// model's folder. What else there is in the files is not looked at.
Result<LearnedDraft> ReadOwnMedusa(Checkpoint model, const ModelConfig& target);

/// Whether a model has layers beside its own that each predict one further token, as Meta's models
/// do that were trained to predict several: tensors model.extra_heads.N.* of a folder.
bool HasExtraHeads(const Checkpoint& model);

/// These as a drafter (FeatureSpec::Join::kLayerHeads) for the model, which is `target` as
/// OpenCheckpoint has read it, a Llama. They read what enters its last layer, and share its last
/// norm and its lm head. What else there is in the files is not looked at.
Result<LearnedDraft> ReadExtraHeads(Checkpoint model, const Checkpoint& target,
                                    const ModelConfig& target_config);

}  // namespace foretoken
