#pragma once

#include <string>

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Whether a checkpoint is a GGUF file of an EAGLE-3 drafter (general.architecture eagle3).
bool IsEagle3Gguf(const Checkpoint& file);

/// What such a file says, in the form of the config.json of EAGLE-3's authors. A key that changes
/// what is computed in a way that is not known is refused.
Result<std::string> Eagle3FromGguf(const Checkpoint& file);

}  // namespace foretoken
