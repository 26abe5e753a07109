#include "core/datastore/index/suffix_sort.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/numbers/integers.h"
#include "core/datastore/datastore_testing.h"
#include "core/datastore/index/token_text.h"

namespace foretoken {
namespace {

template <typename T>
std::vector<T> Padded(const Documents& documents) {
  std::vector<T> text;
  for (const auto& document : documents) {
    for (const Token token : document) text.push_back(static_cast<T>(token));
    text.push_back(kSeparator<T>);
  }
  text.insert(text.end(), kSortDepth, kSeparator<T>);
  return text;
}

// All positions but those of separators, by std::sort.
template <typename T>
std::vector<std::uint32_t> NaiveOrder(const std::vector<T>& padded) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i + kSortDepth < padded.size(); ++i) {
    if (padded[i] != kSeparator<T>) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&padded](std::uint32_t a, std::uint32_t b) {
    const auto x = std::span(padded).subspan(a, kSortDepth);
    const auto y = std::span(padded).subspan(b, kSortDepth);
    if (!std::equal(x.begin(), x.end(), y.begin())) {
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    }
    return a < b;
  });
  return order;
}

template <typename T>
void ExpectSorted(const std::vector<T>& padded, int vocabulary, int threads) {
  const std::vector<std::uint32_t> expected = NaiveOrder(padded);
  const SuffixOrder order = SortSuffixes(
      std::span<const T>(padded).first(padded.size() - kSortDepth), vocabulary, threads);
  ASSERT_TRUE(std::ranges::equal(order.suffixes.span(), expected));
  ASSERT_EQ(order.buckets.size(), Size(vocabulary) + 1);
  EXPECT_EQ(order.buckets[0], 0U);
  EXPECT_EQ(order.buckets[vocabulary], expected.size());
  for (int token = 0; token < vocabulary; ++token) {
    for (std::uint32_t i = order.buckets[token]; i < order.buckets[token + 1]; ++i) {
      ASSERT_EQ(padded[expected[i]], static_cast<T>(token));
    }
  }
}

TEST(SuffixSort, MatchesTheNaiveOrder) {
  std::mt19937 random(1);
  for (const int vocabulary : {1, 2, 5, 300, 2048, 65535}) {
    for (int round = 0; round < 4; ++round) {
      const Documents documents = RandomDocuments(&random, 20, 150, vocabulary);
      ExpectSorted(Padded<std::uint16_t>(documents), vocabulary, 1 + round);
    }
  }
  // Three tokens to a key, two, and the widest.
  for (const int vocabulary : {131072, 4'000'000, 40'000'000}) {
    ExpectSorted(Padded<std::uint32_t>(RandomDocuments(&random, 20, 150, vocabulary)), vocabulary,
                 2);
  }
}

TEST(SuffixSort, EmptyText) {
  const std::vector<std::uint16_t> padding(kSortDepth, kSeparator<std::uint16_t>);
  ExpectSorted(padding, 7, 2);
}

// More suffixes of one token than are sorted with a key each: they are partitioned in place, here
// down to runs that are equal to the sorting depth.
TEST(SuffixSort, GiantBuckets) {
  std::mt19937 random(2);
  std::vector<std::uint16_t> text((std::size_t{1} << 20) + 300'000);
  const auto pad = [&text] { text.insert(text.end(), kSortDepth, kSeparator<std::uint16_t>); };
  for (auto& token : text)
    token = static_cast<std::uint16_t>(random() % 40 == 0 ? 1 + random() % 3 : 0);
  pad();
  ExpectSorted(text, 4, 2);

  std::ranges::fill(text, 0);
  pad();
  const std::size_t entries = text.size() - kSortDepth;
  const SuffixOrder order = SortSuffixes(std::span<const std::uint16_t>(text).first(entries), 4, 2);
  // Equal but for what is near the end, where the separator is greatest: positions ascend.
  EXPECT_TRUE(std::ranges::is_sorted(order.suffixes.span()));
}

TEST(SuffixSort, ThreadsDoNotMatter) {
  std::mt19937 random(3);
  const auto text = Padded<std::uint32_t>(RandomDocuments(&random, 200, 500, 100'000));
  const auto entries = std::span<const std::uint32_t>(text).first(text.size() - kSortDepth);
  const SuffixOrder one = SortSuffixes(entries, 100'000, 1);
  const SuffixOrder five = SortSuffixes(entries, 100'000, 5);
  EXPECT_TRUE(std::ranges::equal(one.suffixes.span(), five.suffixes.span()));
  EXPECT_TRUE(std::ranges::equal(one.buckets.span(), five.buckets.span()));
}

}  // namespace
}  // namespace foretoken
