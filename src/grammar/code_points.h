#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/static_vector.h"
#include "grammar/grammar.h"

namespace foretoken {

inline constexpr std::uint32_t kLastCodePoint = 0x10FFFF;

/// Whether `code` is a character that UTF-8 can carry: in range and no surrogate.
inline bool IsScalarValue(std::uint32_t code) {
  return code <= kLastCodePoint && (code < 0xD800 || code > 0xDFFF);
}

/// Appends `code`, a scalar value, as UTF-8.
void AppendUtf8(std::uint32_t code, std::string* out);

/// Takes the character at the front of `text` off it; false where that is not valid UTF-8.
bool TakeUtf8(std::string_view* text, std::uint32_t* code);

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
