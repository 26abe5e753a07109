#pragma once

#include <optional>

#include "text/grammar/automaton/byte_set.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// What `range` has of the writable bytes, as ranges.
StaticVector<ByteRange, 128> WritableRanges(ByteRange range, const ByteSet& writable);

/// Whether some character of `sequence` has writable bytes only.
bool HasWritable(const ByteSequence& sequence, const ByteSet& writable);

/// Takes out of `grammar` the alternatives and rules each of whose texts needs a byte that is not
/// writable; classes keep characters that cannot be written. Where no text is left, the answer is
/// such a byte, and the grammar is of no use.
std::optional<std::uint8_t> KeepWritable(const ByteSet& writable, Grammar* grammar);

}  // namespace foretoken
