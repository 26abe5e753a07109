#pragma once

#include <string>

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Whether a file is one of a DFlash or DSpark drafter as llama.cpp's converter writes it, by its
/// architecture.
bool IsDflashGguf(const Checkpoint& file);

/// What the metadata of such a file say, in the form of a config.json of DFlash's authors, or of
/// DSpark's where it has their heads. Where no key says how many tokens there are, these are as
/// many as `vocabulary`.
Result<std::string> DflashFromGguf(const Checkpoint& file, int vocabulary);

}  // namespace foretoken
