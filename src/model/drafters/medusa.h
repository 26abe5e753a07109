#pragma once

#include "base/result.h"
#include "model/drafters/learned_draft.h"

namespace foretoken {

/// Whether a folder has Medusa's heads alone, and not a whole model beside them.
bool IsMedusa(const Checkpoint& folder);

/// A drafter of such heads (FeatureSpec::Join::kHeads) for a target of this configuration. How many
/// there are its tensors say, since config.json may not.
Result<LearnedDraft> ReadMedusa(Checkpoint folder, const ModelConfig& target);

}  // namespace foretoken
