#include "datastore/sampler.h"

#include <algorithm>
#include <numeric>

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

const TokenTree& ContinuationSampler::Sample(SegmentList segments, std::span<const Token> context,
                                             int branch_length) {
  const int longest = PrepareSearch(segments, context, limits_.longest_prefix);
  int samples = 0;
  for (int length = longest; length >= 1 && samples < limits_.enough; --length) {
    samples += SamplePrefix(segments, length, branch_length);
  }
  return tree_;
}

// Empties the tree and finds the prefixes of up to `longest` tokens; returns how long they can be.
int ContinuationSampler::PrepareSearch(SegmentList segments, std::span<const Token> context,
                                       int longest) {
  tree_.Clear();
  path_.clear();
  nodes_.clear();
  const auto tokens = static_cast<int>(std::min<std::size_t>(context.size(), kSortDepth));
  longest = std::min(longest, tokens);
  if (segments.empty() || longest == 0) return 0;
  search_.Find(segments, context, longest);
  return longest;
}

const TokenTree& ContinuationSampler::TakeFirst(SegmentList segments,
                                                std::span<const Token> context, int longest,
                                                int shortest, int most, int branch_length) {
  longest = PrepareSearch(segments, context, longest);
  for (int length = longest; length >= shortest; --length) {
    draws_.clear();
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const SuffixRange range = search_.range(length, s);
      const std::size_t left = static_cast<std::size_t>(most) - draws_.size();
      for (std::uint32_t i = 0; i < std::min<std::size_t>(range.size(), left); ++i) {
        draws_.push_back({segments[s].get(), range.begin + i});
      }
    }
    if (draws_.empty()) continue;
    InsertDraws(segments, length, branch_length);
    break;
  }
  return tree_;
}

int ContinuationSampler::SamplePrefix(SegmentList segments, int length, int branch_length) {
  sizes_.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    sizes_.push_back(search_.range(length, s).size());
  }
  SplitBudget(sizes_, static_cast<std::uint32_t>(limits_.budget), &shares_);
  draws_.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    DrawFrom(*segments[s], search_.range(length, s), shares_[s].count);
  }
  if (!draws_.empty()) InsertDraws(segments, length, branch_length);
  return static_cast<int>(draws_.size());
}

void ContinuationSampler::InsertDraws(SegmentList segments, int length, int branch_length) {
  if (segments[0]->token_bytes() == 2) {
    InsertDrawsOf<std::uint16_t>(length, branch_length);
  } else {
    InsertDrawsOf<std::uint32_t>(length, branch_length);
  }
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

template <typename T>
void ContinuationSampler::InsertDrawsOf(int length, int branch_length) {
  const auto text_of = [length](const Draw& draw) {
    return static_cast<const T*>(draw.segment->parts().text) + draw.suffix + length;
  };
  for (Draw& draw : draws_) {
    draw.suffix = draw.segment->parts().suffixes[draw.suffix];
    __builtin_prefetch(text_of(draw));
    __builtin_prefetch(text_of(draw) + branch_length - 1);
  }
  std::array<Token, 64> path;
  const int most = std::min(branch_length, static_cast<int>(path.size()));
  for (const Draw& draw : draws_) {
    const T* text = text_of(draw);
    int tokens = 0;
    // Behind the last entry lie kSortDepth separators.
    while (tokens < most && text[tokens] != kSeparator<T>) {
      path[tokens] = static_cast<Token>(text[tokens]);
      ++tokens;
    }
    Insert(std::span(path).first(static_cast<std::size_t>(tokens)));
  }
}

// Neighbours in the order of suffixes share most of their path: that part needs no search.
void ContinuationSampler::Insert(std::span<const Token> path) {
  tree_.Count(0);
  std::size_t i = 0;
  while (i < std::min(path.size(), path_.size()) && path[i] == path_[i]) tree_.Count(nodes_[i++]);
  path_.resize(i);
  nodes_.resize(i);
  for (; i < path.size(); ++i) {
    nodes_.push_back(tree_.FindOrAdd(i == 0 ? 0 : nodes_.back(), path[i]));
    path_.push_back(path[i]);
    tree_.Count(nodes_.back());
  }
}

}  // namespace foretoken
