#include "core/datastore/index/segment_search.h"

#include <algorithm>

namespace foretoken {
namespace {

// Negative, 0 or positive as the text comes before, matches or comes after the pattern.
template <typename T>
int Compare(const T* text, const Token* pattern, int length) {
  for (int i = 0; i < length; ++i) {
    const auto wanted = static_cast<T>(pattern[i]);
    if (text[i] != wanted) return text[i] < wanted ? -1 : 1;
  }
  return 0;
}

}  // namespace

void SegmentSearch::AddCursors(const Segment& segment, std::span<const Token> pattern,
                               SuffixRange* range) {
  for (const Token token : pattern) {
    if (token < 0 || token >= segment.vocabulary()) return;
  }
  const auto buckets = segment.parts().buckets;
  const SuffixRange bucket{buckets[pattern[0]], buckets[pattern[0] + 1]};
  if (bucket.begin > bucket.end) return;  // Part of the segment was lost.
  *range = bucket;
  if (pattern.size() == 1) return;
  for (const bool upper : {false, true}) {
    cursors_.push_back({.segment = &segment,
                        .pattern = pattern.data() + 1,
                        .length = Int(pattern.size()) - 1,
                        .low = bucket.begin,
                        .count = bucket.size(),
                        .upper = upper,
                        .bound = upper ? &range->end : &range->begin,
                        .position = 0});
  }
}

template <typename T>
void SegmentSearch::BisectAs() {
  while (!cursors_.empty()) {
    for (const Cursor& cursor : cursors_) {
      __builtin_prefetch(&cursor.segment->parts().suffixes[cursor.low + cursor.count / 2]);
    }
    for (Cursor& cursor : cursors_) {
      cursor.position = cursor.segment->parts().suffixes[cursor.low + cursor.count / 2];
      __builtin_prefetch(static_cast<const T*>(cursor.segment->parts().text) + cursor.position + 1);
    }
    for (Cursor& cursor : cursors_) {
      const T* text = static_cast<const T*>(cursor.segment->parts().text) + cursor.position + 1;
      const int order = Compare(text, cursor.pattern, cursor.length);
      const std::uint32_t half = cursor.count / 2;
      if (order < 0 || (cursor.upper && order == 0)) {
        cursor.low += half + 1;
        cursor.count -= half + 1;
      } else {
        cursor.count = half;
      }
    }
    std::erase_if(cursors_, [](const Cursor& cursor) {
      if (cursor.count > 0) return false;
      *cursor.bound = cursor.low;
      return true;
    });
  }
}

void SegmentSearch::Find(SegmentList segments, std::span<const Token> context, int longest) {
  FT_CHECK(longest <= kSortDepth && longest <= std::ssize(context), "length {}", longest);
  segments_ = segments.size();
  ranges_.assign(segments_ * longest, {});
  cursors_.clear();
  for (int length = 1; length <= longest; ++length) {
    for (std::size_t s = 0; s < segments_; ++s) {
      AddCursors(*segments[s], context.last(length), &ranges_[Size(length - 1) * segments_ + s]);
    }
  }
  std::erase_if(cursors_, [](const Cursor& cursor) { return cursor.count == 0; });
  if (cursors_.empty()) return;
  Bisect();
  // Only where part of a segment was lost meanwhile.
  for (SuffixRange& range : ranges_) range.end = std::max(range.begin, range.end);
}

void SegmentSearch::Bisect() {
  if (cursors_.front().segment->token_bytes() == 2) {
    BisectAs<std::uint16_t>();
  } else {
    BisectAs<std::uint32_t>();
  }
}

}  // namespace foretoken
