#pragma once

#include "base/result.h"
#include "core/model/config/config_fields.h"
#include "core/model/drafters/learned_draft.h"

namespace foretoken {

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

}  // namespace foretoken
