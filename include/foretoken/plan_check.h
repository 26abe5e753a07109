#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretoken/result.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// How a caller's user writes a field of PlanOptions: "tree_width" may be "--tree-width".
using FieldSpelling = std::string (*)(std::string_view field);

/// As the public headers write it.
inline std::string PlainSpelling(std::string_view field) { return std::string(field); }

/// Refuses options that say nothing to any of `modes`, or are not for one of them.
Status CheckOptions(const PlanOptions& options, std::span<const Mode> modes,
                    Verification verification, FieldSpelling spell = PlainSpelling);

/// Refuses options that no engine can follow, whatever its limits.
Status CheckShapes(const PlanOptions& options, FieldSpelling spell = PlainSpelling);

}  // namespace foretoken
