#include "core/datastore/index/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/datastore/datastore_testing.h"
#include "core/datastore/index/segment_search.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Segment> BuildSegment(const Documents& documents, int vocabulary) {
  TokenText text(vocabulary);
  for (const auto& document : documents) {
    EXPECT_TRUE(text.Append(document).ok());
  }
  return Segment::Build(std::move(text), 2);
}

// The continuations of a range, as a sorted list of token lists.
Documents Continuations(const Segment& segment, SuffixRange range, int skip, int length) {
  Documents found;
  segment.Visit([&]<typename T>(const T* text) {
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      std::vector<Token>& tokens = found.emplace_back();
      const T* next = text + segment.parts().suffixes[i] + skip;
      for (int j = 0; j < length && next[j] != kSeparator<T>; ++j) {
        tokens.push_back(static_cast<Token>(next[j]));
      }
    }
  });
  return found;
}

TEST(Segment, FindsWhatANaiveSearchFinds) {
  std::mt19937 random(1);
  for (const int vocabulary : {2, 50, 40'000, 65'536, 131'072}) {
    const Documents old_documents = RandomDocuments(&random, 30, 60, vocabulary);
    const Documents new_documents = RandomDocuments(&random, 10, 200, vocabulary);
    const std::vector<std::shared_ptr<const Segment>> segments = {
        BuildSegment(old_documents, vocabulary), BuildSegment(new_documents, vocabulary)};
    EXPECT_EQ(segments[0]->token_bytes(), vocabulary <= 65'535 ? 2 : 4);
    SegmentSearch search;
    for (int round = 0; round < 200; ++round) {
      const auto& documents = round % 2 == 0 ? old_documents : new_documents;
      const auto& document = documents[random() % documents.size()];
      if (document.size() < 6) continue;
      const std::size_t end = 6 + random() % (document.size() - 5);
      const auto context = std::span(document).first(end);
      search.Find(segments, context, 6);
      for (int length = 1; length <= 6; ++length) {
        const std::vector<Token> pattern(context.end() - length, context.end());
        for (const std::size_t s : {0, 1}) {
          Documents expected =
              NaiveContinuations(s == 0 ? old_documents : new_documents, pattern, 9);
          Documents found = Continuations(*segments[s], search.range(length, s), length, 9);
          std::ranges::sort(expected);
          std::ranges::sort(found);
          ASSERT_EQ(found, expected);
        }
      }
    }
  }
}

TEST(Segment, UnknownTokensAreFoundNowhere) {
  const std::vector<std::shared_ptr<const Segment>> segments = {BuildSegment({{1, 2, 3}}, 10)};
  SegmentSearch search;
  for (const std::vector<Token>& context :
       std::vector<std::vector<Token>>{{2, 10}, {-1, 3}, {3, 65'535}, {2, 1 << 30}}) {
    search.Find(segments, context, 2);
    EXPECT_EQ(search.range(2, 0).size(), 0U);
  }
  search.Find({}, std::vector<Token>{1}, 1);
}

// Ids above 32767 are no negative numbers, and the greatest possible one is no separator.
TEST(Segment, WideTokens) {
  const Token last = 65'534;
  const std::vector<std::shared_ptr<const Segment>> segments = {
      BuildSegment({{40'000, last, 40'000}, {last, last}}, 65'535)};
  SegmentSearch search;
  search.Find(segments, std::vector<Token>{40'000, last}, 2);
  EXPECT_EQ(search.range(1, 0).size(), 3U);
  EXPECT_EQ(search.range(2, 0).size(), 1U);
}

TEST(Segment, TextRefusesStrangersAndKeepsItsState) {
  TokenText text(100);
  ASSERT_TRUE(text.Append(std::vector<Token>{1, 2}).ok());
  const Status status = text.Append(std::vector<Token>{3, 100});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("token 100 lies outside the vocabulary of 100"));
  EXPECT_FALSE(text.Append(std::vector<Token>{-1}).ok());
  EXPECT_TRUE(text.Append({}).ok());
  EXPECT_EQ(text.documents(), 1U);
  EXPECT_EQ(text.entries(), 3U);
}

TEST(Segment, CheckOrderFindsASwap) {
  std::mt19937 random(4);
  const auto segment = BuildSegment(RandomDocuments(&random, 10, 100, 20), 20);
  EXPECT_TRUE(segment->CheckOrder().ok());
  std::vector<std::uint32_t> suffixes(segment->parts().suffixes.begin(),
                                      segment->parts().suffixes.end());
  SegmentParts parts = segment->parts();
  parts.suffixes = suffixes;
  std::swap(suffixes[0], suffixes[1]);
  EXPECT_FALSE(Segment(parts, nullptr).CheckOrder().ok());
  std::swap(suffixes[0], suffixes[1]);
  EXPECT_TRUE(Segment(parts, nullptr).CheckOrder().ok());
  suffixes[1] = suffixes[0];
  EXPECT_FALSE(Segment(parts, nullptr).CheckOrder().ok());
}

TEST(Segment, AppendToCopiesAllDocuments) {
  const auto segment = BuildSegment({{1, 2}, {3}}, 10);
  TokenText text(10);
  ASSERT_TRUE(segment->AppendTo(&text).ok());
  ASSERT_TRUE(segment->AppendTo(&text).ok());
  EXPECT_EQ(text.documents(), 4U);
  EXPECT_EQ(Segment::Build(std::move(text), 1)->tokens(), 6U);
}

}  // namespace
}  // namespace foretoken
