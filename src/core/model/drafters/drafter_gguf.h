#pragma once

#include <string>

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Whether a file is one of an EAGLE-3, DFlash or DSpark drafter as llama.cpp's converter writes
/// it, by its architecture.
bool IsDrafterGguf(const Checkpoint& file);

/// What the metadata of such a file say, in the form of a config.json of EAGLE-3's or DFlash's
/// authors, or of DSpark's where it has their heads. A key that changes what is computed in a way
/// that is not known is refused. Where no key of DFlash says how many tokens there are, these are
/// as many as `vocabulary`.
Result<std::string> DrafterFromGguf(const Checkpoint& file, int vocabulary);

}  // namespace foretoken
