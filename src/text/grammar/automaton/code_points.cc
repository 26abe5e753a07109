#include "text/grammar/automaton/code_points.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text/utf8.h"

namespace foretoken {
namespace {

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
