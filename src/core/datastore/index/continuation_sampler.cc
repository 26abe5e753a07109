#include "core/datastore/index/continuation_sampler.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/numbers/integers.h"

namespace foretoken {

void SplitBudget(std::span<const std::uint32_t> sizes, std::uint32_t budget,
                 std::vector<BudgetShare>* shares) {
  const auto total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  shares->clear();
  std::uint32_t left = budget;
  for (const std::uint32_t size : sizes) {
    const std::uint64_t product = std::uint64_t{size} * budget;
    shares->push_back(total <= budget ? BudgetShare{size, 0}
                                      : BudgetShare{static_cast<std::uint32_t>(product / total),
                                                    product % total});
    left -= shares->back().count;
  }
  if (total <= budget) return;
  for (; left > 0; --left) {
    BudgetShare& most = *std::ranges::max_element(*shares, {}, &BudgetShare::remainder);
    ++most.count;
    most.remainder = 0;
  }
}

SampledTree& ContinuationSampler::Sample(SegmentList segments, std::span<const Token> context,
                                         int branch_length) {
  const int longest = PrepareSearch(segments, context, limits_.longest_prefix, branch_length);
  const auto enough = static_cast<std::uint32_t>(limits_.enough);
  for (int length = longest; length >= 1 && tree_.count(0) < enough; --length) {
    SamplePrefix(segments, length);
  }
  return tree_;
}

// Empties the tree and finds the prefixes of up to `longest` tokens; returns how long they can be.
int ContinuationSampler::PrepareSearch(SegmentList segments, std::span<const Token> context,
                                       int longest, int branch_length) {
  const int tokens = std::min<std::size_t>(context.size(), kSortDepth);
  longest = std::min(longest, tokens);
  if (segments.empty()) longest = 0;
  tree_.Clear(longest == 0 ? 0 : segments[0]->token_bytes(), branch_length);
  if (longest > 0) search_.Find(segments, context, longest);
  return longest;
}

SampledTree& ContinuationSampler::TakeFirst(SegmentList segments, std::span<const Token> context,
                                            int longest, int shortest, int most,
                                            int branch_length) {
  longest = PrepareSearch(segments, context, longest, branch_length);
  for (int length = longest; length >= shortest && tree_.count(0) == 0; --length) {
    draws_.clear();
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const SuffixRange range = search_.range(length, s);
      const std::size_t left = Size(most) - draws_.size();
      for (std::uint32_t i = 0; i < std::min<std::size_t>(range.size(), left); ++i) {
        draws_.push_back({segments[s].get(), range.begin + i});
      }
    }
    AddDraws(length);
  }
  return tree_;
}

void ContinuationSampler::SamplePrefix(SegmentList segments, int length) {
  sizes_.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    sizes_.push_back(search_.range(length, s).size());
  }
  SplitBudget(sizes_, static_cast<std::uint32_t>(limits_.budget), &shares_);
  draws_.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    DrawFrom(*segments[s], search_.range(length, s), shares_[s].count);
  }
  AddDraws(length);
}

// k = `count` of the c suffixes of the range: lo + floor(i (c - 1) / (k - 1) + 1/2), i < k.
void ContinuationSampler::DrawFrom(const Segment& segment, SuffixRange range, std::uint32_t count) {
  const std::uint32_t* suffixes = segment.parts().suffixes.data();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t step =
        count == 1 ? 0 : (2 * i * (range.size() - 1) + (count - 1)) / (2 * (count - 1));
    const std::uint32_t index = range.begin + static_cast<std::uint32_t>(step);
    __builtin_prefetch(&suffixes[index]);
    draws_.push_back({&segment, index});
  }
}

void ContinuationSampler::AddDraws(int length) {
  for (const Draw& draw : draws_) {
    const SegmentParts& parts = draw.segment->parts();
    // Beyond the end only where part of the segment was lost: what matched may be zeros.
    const auto entry =
        std::min<std::size_t>(parts.suffixes[draw.suffix] + Size(length), parts.entries);
    const std::size_t bytes = draw.segment->token_bytes();
    const void* text = static_cast<const std::byte*>(parts.text) + bytes * entry;
    __builtin_prefetch(text);
    tree_.Add(text);
  }
}

}  // namespace foretoken
