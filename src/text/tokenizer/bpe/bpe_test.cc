#include "text/tokenizer/bpe/bpe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

namespace foretoken {
namespace {

/// A vocabulary over a, b, c with random merges, and the rule of BPE in its plainest form.
struct RandomVocabulary {
  std::vector<std::string> bytes = {"a", "b", "c"};
  std::vector<BpeMerge> merges;

  RandomVocabulary(unsigned seed, int count) {
    std::mt19937 random(seed);
    while (std::ssize(merges) < count) {
      const auto left = static_cast<Token>(random() % bytes.size());
      const auto right = static_cast<Token>(random() % bytes.size());
      merges.push_back({left, right, static_cast<Token>(bytes.size()),
                        static_cast<std::uint32_t>(merges.size())});
      bytes.push_back(bytes[left] + bytes[right]);
    }
  }

  std::vector<std::string_view> views() const { return {bytes.begin(), bytes.end()}; }

  std::vector<Token> Encode(std::string_view word) const {
    std::vector<Token> tokens;
    for (const char c : word) tokens.push_back(c - 'a');
    while (true) {
      const BpeMerge* best = nullptr;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        for (const BpeMerge& merge : merges) {
          if (merge.left != tokens[i] || merge.right != tokens[i + 1]) continue;
          if (best == nullptr || merge.rank < best->rank) {
            best = &merge;
            at = i;
          }
          break;  // the first merge of a pair counts
        }
      }
      if (best == nullptr) return tokens;
      tokens[at] = best->merged;
      tokens.erase(tokens.begin() + at + 1);
    }
  }
};

TEST(Bpe, FollowsTheRanksInShortAndLongWords) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const RandomVocabulary vocabulary(seed, 12);
    const Bpe bpe(vocabulary.views(), vocabulary.merges, {});
    std::mt19937 random(seed + 100);
    for (int round = 0; round < 100; ++round) {
      std::string word;
      for (unsigned length = random() % 60; word.size() < length;) {
        word += static_cast<char>('a' + random() % 3);
      }
      std::vector<Token> tokens;
      bpe.EncodeWord(word, &tokens);
      ASSERT_EQ(tokens, vocabulary.Encode(word)) << word;
    }
  }
}

TEST(Bpe, WholeWordsFirstIgnoresMerges) {
  const std::vector<std::string_view> bytes = {"a", "b", "ab", "aab"};
  const std::vector<BpeMerge> merges = {{0, 1, 2, 0}};
  std::vector<Token> tokens;
  Bpe(bytes, merges, {}).EncodeWord("aab", &tokens);
  EXPECT_EQ(tokens, (std::vector<Token>{0, 2}));
  tokens.clear();
  Bpe(bytes, merges, {.whole_words_first = true}).EncodeWord("aab", &tokens);
  EXPECT_EQ(tokens, (std::vector<Token>{3}));
}

TEST(Bpe, BytesWithoutATokenAreUnknownOrDropped) {
  const std::vector<std::string_view> bytes = {"a", "b", "ab", ""};
  const std::vector<BpeMerge> merges = {{0, 1, 2, 0}};
  std::vector<Token> tokens;
  Bpe(bytes, merges, {.unknown = 3}).EncodeWord("axb", &tokens);
  EXPECT_EQ(tokens, (std::vector<Token>{0, 3, 1}));
  tokens.clear();
  Bpe(bytes, merges, {}).EncodeWord("axb", &tokens);
  EXPECT_EQ(tokens, (std::vector<Token>{2}));
}

TEST(Bpe, LongWordsTakeNoQuadraticTime) {
  const RandomVocabulary vocabulary(3, 40);
  const Bpe bpe(vocabulary.views(), vocabulary.merges, {});
  std::string word;
  std::mt19937 random(5);
  while (word.size() < 1'000'000) word += static_cast<char>('a' + random() % 3);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Token> tokens;
  bpe.EncodeWord(word, &tokens);
  // A quadratic algorithm needs minutes; the bound is loose for sanitizers and busy machines.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  std::string joined;
  for (const Token token : tokens) joined += vocabulary.bytes[token];
  EXPECT_EQ(joined, word);
}

}  // namespace
}  // namespace foretoken
