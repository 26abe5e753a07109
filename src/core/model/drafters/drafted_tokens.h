#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/model/translated_model.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// The tokens that a drafter with `drafted` of its own says, out of the target's: of the folder's
/// `d2t` (I64), which has for each either the target's token or, as most do, how much larger that
/// is (never in GGUF files), and of `t2d` (BOOL), which marks these, where there is one. Null where
/// both are the same.
Result<std::shared_ptr<const Translation>> DraftedTokens(const Checkpoint& folder, int drafted,
                                                         const ModelConfig& target);

}  // namespace foretoken
