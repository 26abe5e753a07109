#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/numbers/integers.h"
#include "core/datastore/index/segment.h"
#include "foretoken/types.h"

namespace foretoken {

/// Suffixes [begin, end) of a segment.
struct SuffixRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
  friend bool operator==(const SuffixRange&, const SuffixRange&) = default;
};

/// The segments that one query looks at, oldest first; all of one vocabulary.
using SegmentList = std::span<const std::shared_ptr<const Segment>>;

/// Finds where the last tokens of a context occur. Scratch for one thread; allocates only when a
/// list is longer than any before.
class SegmentSearch {
 public:
  /// Suffixes that start with the last 1, 2 ... `longest` tokens of `context`, for every segment at
  /// once, so that their cache misses overlap. Needs longest <= min(context.size(), kSortDepth).
  void Find(SegmentList segments, std::span<const Token> context, int longest);

  /// What the last Find found.
  SuffixRange range(int length, std::size_t segment) const {
    return ranges_[Size(length - 1) * segments_ + segment];
  }

 private:
  // One bound of one range, by bisection.
  struct Cursor {
    const Segment* segment;
    const Token* pattern;  // Beyond the first token, which the bucket has matched.
    int length;
    std::uint32_t low;
    std::uint32_t count;
    bool upper;
    std::uint32_t* bound;
    std::uint32_t position;
  };

  void AddCursors(const Segment& segment, std::span<const Token> pattern, SuffixRange* range);
  void Bisect();
  template <typename T>
  void BisectAs();

  std::size_t segments_ = 0;
  std::vector<SuffixRange> ranges_;
  std::vector<Cursor> cursors_;
};

}  // namespace foretoken
