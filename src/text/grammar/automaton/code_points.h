#pragma once

#include <cstdint>
#include <vector>

#include "base/static_vector.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// Ascending and disjoint, without surrogates.
std::vector<CodeRange> NormalizeRanges(std::vector<CodeRange> ranges);

/// Every scalar value that normalised `ranges` lack.
std::vector<CodeRange> ComplementRanges(const std::vector<CodeRange>& ranges);

/// What both normalised lists have.
std::vector<CodeRange> IntersectRanges(const std::vector<CodeRange>& a,
                                       const std::vector<CodeRange>& b);

struct ByteRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
};

/// One to four byte ranges, matched one after the other.
using ByteSequence = StaticVector<ByteRange, 4>;

/// The UTF-8 encodings of a range without surrogates, as sequences of independent byte ranges.
std::vector<ByteSequence> Utf8Sequences(CodeRange range);

}  // namespace foretoken
