#pragma once

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/drafters/learned_draft.h"

namespace foretoken {

/// Whether a folder has Medusa's heads alone, by its config.json, which `json` is, and not a whole
/// model beside them.
bool IsMedusa(const Checkpoint& folder, const ConfigFields::Json& json);

/// A drafter of such heads (FeatureSpec::Join::kHeads) for a target of this configuration. How many
/// there are its tensors say, since config.json may not.
Result<LearnedDraft> ReadMedusa(Checkpoint folder, const ConfigFields::Json& json,
                                const ModelConfig& target);

}  // namespace foretoken
