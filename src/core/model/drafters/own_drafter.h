#pragma once

#include <string_view>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/model/drafters/learned_draft.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Makes a drafter for a target of a folder or file, as Checkpoint::Open has read it: what it has
/// beside the model by the name `own`, "mtp" (ReadPredictionLayer, ReadExtraHeads) or "medusa"
/// (ReadOwnMedusa), or where that is empty, the drafter that it is (ReadLearnedDraft). Other names
/// are refused.
Result<LearnedDraft> ReadDrafter(std::string_view own, Checkpoint files, const Checkpoint& target,
                                 const ModelConfig& target_config);

}  // namespace foretoken
