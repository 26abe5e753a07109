#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "core/datastore/datastore_testing.h"
#include "core/datastore/index/continuation_sampler.h"
#include "core/datastore/index/input_trie.h"

namespace foretoken {
namespace {

// Counts by path: what a TokenTree should hold.
using Counts = std::map<std::vector<Token>, std::uint32_t>;

void CollectBelow(const TokenTree& tree, std::uint32_t node, std::vector<Token>* path,
                  Counts* counts) {
  std::uint32_t before = 0;
  for (std::uint32_t child = tree.node(node).first_child; child != 0;
       child = tree.node(child).next_sibling) {
    EXPECT_EQ(tree.node(child).parent, node);
    EXPECT_EQ(tree.node(child).previous_sibling, before);
    EXPECT_EQ(tree.Find(node, tree.node(child).token), child);
    before = child;
    path->push_back(tree.node(child).token);
    EXPECT_TRUE(counts->emplace(*path, tree.node(child).count).second);
    CollectBelow(tree, child, path, counts);
    path->pop_back();
  }
}

void CollectBelow(SampledTree* tree, std::uint32_t node, std::vector<Token>* path, Counts* counts) {
  struct Child {
    std::uint32_t node;
    Token token;
  };
  std::vector<Child> children;
  tree->VisitChildren(node, [&](std::uint32_t child, Token token, std::uint32_t count) {
    EXPECT_EQ(tree->count(child), count);
    children.push_back({child, token});
    path->push_back(token);
    EXPECT_TRUE(counts->emplace(*path, count).second);
    path->pop_back();
  });
  for (const Child& child : children) {
    path->push_back(child.token);
    CollectBelow(tree, child.node, path, counts);
    path->pop_back();
  }
}

Counts CountsOf(SampledTree* tree) {
  Counts counts;
  std::vector<Token> path;
  CollectBelow(tree, 0, &path, &counts);
  return counts;
}

Counts CountsOf(const TokenTree& tree) {
  Counts counts;
  std::vector<Token> path;
  CollectBelow(tree, 0, &path, &counts);
  EXPECT_EQ(counts.size() + 1, tree.size());
  return counts;
}

// Every string of up to kDepth tokens in the documents, the first token of the first document being
// the oldest in the window.
Counts NaiveCounts(const Documents& documents) {
  Counts counts;
  for (const auto& document : documents) {
    for (std::size_t i = 0; i < document.size(); ++i) {
      for (std::size_t length = 1;
           length <= std::min<std::size_t>(InputTrie::kDepth, document.size() - i); ++length) {
        ++counts[{document.begin() + i, document.begin() + i + length}];
      }
    }
  }
  return counts;
}

TEST(InputTrie, CountsEveryString) {
  std::mt19937 random(1);
  Documents documents(1);
  InputTrie trie;
  for (int i = 0; i < 300; ++i) {
    if (random() % 40 == 0) {
      trie.Break();
      documents.emplace_back();
    }
    documents.back().push_back(static_cast<Token>(random() % 4));
    trie.Append(documents.back().back());
    if (i % 30 != 0) continue;
    ASSERT_EQ(CountsOf(trie.tree()), NaiveCounts(documents));
    EXPECT_EQ(trie.tree().node(0).count, static_cast<std::uint32_t>(i + 1));
  }
  trie.Clear();
  EXPECT_EQ(trie.tree().size(), 1U);
  trie.Append(3);
  EXPECT_EQ(CountsOf(trie.tree()), Counts({{{3}, 1}}));
}

TEST(InputTrie, ATokenIsFoundAtOnce) {
  InputTrie trie;
  for (const Token token : {7, 8, 9, 7}) trie.Append(token);
  const std::uint32_t suffix = trie.Suffix(1);
  EXPECT_EQ(trie.tree().node(suffix).token, 7);
  EXPECT_EQ(trie.tree().node(suffix).count, 2U);
  EXPECT_NE(trie.tree().Find(suffix, 8), 0U);
  EXPECT_NE(trie.Suffix(4), 0U);
  EXPECT_EQ(trie.Suffix(5), 0U);
  trie.Break();
  EXPECT_EQ(trie.Suffix(1), 0U);
}

// The window slides exactly: what has left it was never there.
TEST(InputTrie, ForgetsWhatLeavesTheWindow) {
  constexpr std::size_t kWindow = 50;
  std::mt19937 random(2);
  InputTrie trie(kWindow);
  std::deque<Token> recent;  // -1: a break.
  std::size_t largest = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool is_break = random() % 30 == 0 && !recent.empty() && recent.back() != -1;
    const Token token = is_break ? -1 : static_cast<Token>(random() % 5);
    if (is_break) {
      trie.Break();
    } else {
      trie.Append(token);
    }
    recent.push_back(token);
    if (recent.size() > kWindow) recent.pop_front();
    largest = std::max(largest, trie.tree().size());
    if (i % 25 != 0) continue;
    Documents documents(1);
    for (const Token t : recent) {
      if (t == -1) {
        documents.emplace_back();
      } else {
        documents.back().push_back(t);
      }
    }
    ASSERT_EQ(CountsOf(trie.tree()), NaiveCounts(documents));
  }
  EXPECT_LE(largest, kWindow * InputTrie::kDepth + 1);
}

TEST(Sampler, SplitsTheBudgetByLargestRemainder) {
  std::vector<BudgetShare> shares;
  const auto split = [&](std::vector<std::uint32_t> sizes) {
    SplitBudget(sizes, 100, &shares);
    std::vector<std::uint32_t> counts;
    for (const BudgetShare& share : shares) counts.push_back(share.count);
    return counts;
  };
  EXPECT_EQ(split({40, 60}), (std::vector<std::uint32_t>{40, 60}));
  EXPECT_EQ(split({3, 0, 5}), (std::vector<std::uint32_t>{3, 0, 5}));
  EXPECT_EQ(split({1000}), (std::vector<std::uint32_t>{100}));
  EXPECT_EQ(split({1'000'000'000, 3'000'000'000}), (std::vector<std::uint32_t>{25, 75}));
  // 33.3, 33.3, 33.3 and 16.6, 33.3, 50.0.
  EXPECT_EQ(split({50, 50, 50}), (std::vector<std::uint32_t>{34, 33, 33}));
  EXPECT_EQ(split({100, 200, 300}), (std::vector<std::uint32_t>{17, 33, 50}));
}

std::vector<std::shared_ptr<const Segment>> BuildSegments(const std::vector<Documents>& parts,
                                                          int vocabulary) {
  std::vector<std::shared_ptr<const Segment>> segments;
  for (const Documents& documents : parts) {
    TokenText text(vocabulary);
    for (const auto& document : documents) EXPECT_TRUE(text.Append(document).ok());
    segments.push_back(Segment::Build(std::move(text), 1));
  }
  return segments;
}

// With a budget that takes everything, the tree counts every continuation: of all prefixes until
// there are enough samples.
TEST(Sampler, CountsAllContinuationsOfRarePrefixes) {
  std::mt19937 random(3);
  for (const int vocabulary : {30, 100'000}) {
    const std::vector<Documents> parts = {RandomDocuments(&random, 10, 60, vocabulary),
                                          RandomDocuments(&random, 10, 60, vocabulary)};
    const auto segments = BuildSegments(parts, vocabulary);
    constexpr int kEnough = 20;
    ContinuationSampler sampler({.longest_prefix = 4, .budget = 1 << 20, .enough = kEnough});
    for (int round = 0; round < 100; ++round) {
      const auto& document = parts[round % 2][random() % 10];
      if (document.empty()) continue;
      const auto context = std::span(document).first(1 + random() % document.size());
      Counts expected;
      std::size_t samples = 0;
      for (std::size_t length = std::min<std::size_t>(4, context.size());
           length >= 1 && samples < kEnough; --length) {
        for (const Documents& documents : parts) {
          const std::vector<Token> pattern(context.end() - length, context.end());
          for (const auto& next : NaiveContinuations(documents, pattern, 6)) {
            ++samples;
            for (std::size_t i = 1; i <= next.size(); ++i) {
              ++expected[{next.begin(), next.begin() + i}];
            }
          }
        }
      }
      SampledTree& tree = sampler.Sample(segments, context, 6);
      ASSERT_EQ(CountsOf(&tree), expected);
      EXPECT_EQ(CountsOf(&tree), expected);  // The tree is built now.
      EXPECT_EQ(tree.count(0), samples);
    }
  }
}

// At regular intervals over the sorted continuations: 300 occurrences, of which 2/3 continue with
// one token, are sampled in that proportion, where the first 100 would all be of the first kind.
TEST(Sampler, SamplesAtRegularIntervals) {
  Documents documents;
  for (int i = 0; i < 300; ++i) documents.push_back({5, i < 100 ? 1 : 9, 2});
  const auto segments = BuildSegments({documents}, 10);
  ContinuationSampler sampler;
  SampledTree& tree = sampler.Sample(segments, std::vector<Token>{5}, 2);
  EXPECT_EQ(tree.count(0), 100U);
  const Counts expected = {{{1}, 33}, {{1, 2}, 33}, {{9}, 67}, {{9, 2}, 67}};
  EXPECT_EQ(CountsOf(&tree), expected);
}

TEST(Sampler, EdgeCases) {
  const auto segments = BuildSegments({{{1, 2}}, {}}, 10);
  ContinuationSampler sampler;
  const auto continuations = [&](SegmentList list, std::vector<Token> context) {
    return CountsOf(&sampler.Sample(list, context, 5));
  };
  EXPECT_EQ(continuations(segments, {}), Counts{});
  EXPECT_EQ(continuations({}, {1}), Counts{});
  EXPECT_EQ(continuations(segments, {7}), Counts{});
  // At a document's end there is nothing to propose.
  EXPECT_EQ(continuations(segments, {2}), Counts{});
  EXPECT_EQ(continuations(segments, {1}), (Counts{{{2}, 1}}));
}

}  // namespace
}  // namespace foretoken
