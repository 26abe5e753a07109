#include "grammar/code_points.h"

#include <algorithm>

namespace foretoken {
namespace {

int Utf8Length(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

void SplitRange(CodeRange range, std::vector<ByteSequence>* out) {
  for (const std::uint32_t last : {0x7FU, 0x7FFU, 0xFFFFU}) {
    if (range.first <= last && last < range.last) {
      SplitRange({range.first, last}, out);
      SplitRange({last + 1, range.last}, out);
      return;
    }
  }
  // Where the ends differ in a leading byte, every trailing byte must run through all its values.
  for (const std::uint32_t shift : {6U, 12U, 18U}) {
    const std::uint32_t low = (1U << shift) - 1;
    if (Utf8Length(range.last) <= static_cast<int>(shift / 6) ||
        (range.first & ~low) == (range.last & ~low)) {
      continue;
    }
    if ((range.first & low) != 0) {
      SplitRange({range.first, range.first | low}, out);
      SplitRange({(range.first | low) + 1, range.last}, out);
      return;
    }
    if ((range.last & low) != low) {
      SplitRange({range.first, (range.last & ~low) - 1}, out);
      SplitRange({range.last & ~low, range.last}, out);
      return;
    }
  }
  std::string first;
  std::string last;
  AppendUtf8(range.first, &first);
  AppendUtf8(range.last, &last);
  ByteSequence sequence;
  for (std::size_t i = 0; i < first.size(); ++i) {
    sequence.push_back({static_cast<std::uint8_t>(first[i]), static_cast<std::uint8_t>(last[i])});
  }
  out->push_back(sequence);
}

}  // namespace

void AppendUtf8(std::uint32_t code, std::string* out) {
  const int length = Utf8Length(code);
  if (length == 1) {
    out->push_back(static_cast<char>(code));
    return;
  }
  const std::uint32_t lead = 0xF00U >> length & 0xFFU;
  out->push_back(static_cast<char>(lead | code >> 6 * (length - 1)));
  for (int i = length - 2; i >= 0; --i) {
    out->push_back(static_cast<char>(0x80U | (code >> 6 * i & 0x3FU)));
  }
}

bool TakeUtf8(std::string_view* text, std::uint32_t* code) {
  if (text->empty()) return false;
  const auto byte = [&](int i) { return static_cast<std::uint8_t>((*text)[i]); };
  const int length = byte(0) < 0x80   ? 1
                     : byte(0) < 0xC2 ? 0
                     : byte(0) < 0xE0 ? 2
                     : byte(0) < 0xF0 ? 3
                     : byte(0) < 0xF5 ? 4
                                      : 0;
  if (length == 0 || static_cast<int>(text->size()) < length) return false;
  std::uint32_t value = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return false;
    value = value << 6 | (byte(i) & 0x3FU);
  }
  if (!IsScalarValue(value) || Utf8Length(value) != length) return false;
  text->remove_prefix(length);
  *code = value;
  return true;
}

std::vector<CodeRange> NormalizeRanges(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  std::vector<CodeRange> merged;
  for (const CodeRange& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return IntersectRanges(merged, {{0, 0xD7FF}, {0xE000, kLastCodePoint}});
}

std::vector<CodeRange> ComplementRanges(const std::vector<CodeRange>& ranges) {
  std::vector<CodeRange> complement;
  std::uint32_t next = 0;
  for (const CodeRange& range : ranges) {
    if (range.first > next) complement.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) complement.push_back({next, kLastCodePoint});
  return NormalizeRanges(std::move(complement));
}

std::vector<CodeRange> IntersectRanges(const std::vector<CodeRange>& a,
                                       const std::vector<CodeRange>& b) {
  std::vector<CodeRange> common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const CodeRange both{std::max(a[i].first, b[j].first), std::min(a[i].last, b[j].last)};
    if (both.first <= both.last) common.push_back(both);
    ++(a[i].last < b[j].last ? i : j);
  }
  return common;
}

std::vector<ByteSequence> Utf8Sequences(CodeRange range) {
  std::vector<ByteSequence> sequences;
  SplitRange(range, &sequences);
  return sequences;
}

}  // namespace foretoken
