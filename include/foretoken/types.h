#pragma once

#include <cstdint>

namespace foretoken {

/// A vocabulary entry. Negative values are never valid tokens.
using Token = std::int32_t;

/// One request for its whole life, unique within an engine and never reused.
using SequenceId = std::uint64_t;

}  // namespace foretoken
