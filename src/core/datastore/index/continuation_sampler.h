#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/datastore/index/sampled_tree.h"
#include "core/datastore/index/segment_search.h"
#include "foretoken/types.h"

namespace foretoken {

/// One range's part of a budget.
struct BudgetShare {
  std::uint32_t count = 0;
  std::uint64_t remainder = 0;
};

/// Splits `budget` samples over ranges of these sizes, in proportion, by largest remainder (ties go
/// to the first); all are taken where they do not exceed the budget.
void SplitBudget(std::span<const std::uint32_t> sizes, std::uint32_t budget,
                 std::vector<BudgetShare>* shares);

/// P, how many samples, and from how many on a shorter prefix is not tried (Section 3.1.2 of the
/// SSSD paper).
struct SamplingLimits {
  int longest_prefix = 4;
  int budget = 100;
  int enough = 50;
};

/// Algorithm 2 of the SSSD paper: continuations of the end of a context, sampled at regular
/// intervals from the sorted suffixes and counted in a tree. Scratch for one thread;
/// allocates nothing in steady state.
class ContinuationSampler {
 public:
  explicit ContinuationSampler(const SamplingLimits& limits = {}) : limits_(limits) {}

  /// The tree of continuations of up to `branch_length` tokens; the root counts all samples. Valid
  /// until the next call and as long as the segments are. An empty context has none.
  SampledTree& Sample(SegmentList segments, std::span<const Token> context, int branch_length);

  /// REST's way, for comparison: of the longest prefix that occurs, of `longest` to `shortest`
  /// tokens, the first `most` continuations in their order.
  SampledTree& TakeFirst(SegmentList segments, std::span<const Token> context, int longest,
                         int shortest, int most, int branch_length);

 private:
  struct Draw {
    const Segment* segment;
    std::uint32_t suffix;  // Its index.
  };

  int PrepareSearch(SegmentList segments, std::span<const Token> context, int longest,
                    int branch_length);
  void SamplePrefix(SegmentList segments, int length);
  void AddDraws(int length);
  void DrawFrom(const Segment& segment, SuffixRange range, std::uint32_t count);

  SamplingLimits limits_;
  SegmentSearch search_;
  SampledTree tree_;
  std::vector<std::uint32_t> sizes_;
  std::vector<BudgetShare> shares_;
  std::vector<Draw> draws_;
};

}  // namespace foretoken
