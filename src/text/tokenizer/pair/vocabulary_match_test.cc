#include "text/tokenizer/pair/vocabulary_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "text/tokenizer/tokenizer_base.h"

namespace foretoken {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A vocabulary that never encodes anything.
class Words : public TokenizerBase {
 public:
  using TokenizerBase::TokenizerBase;
  bool DropsLeadingSpace() const override { return false; }

 private:
  void EncodeText(std::string_view /*text*/, const AddedToken* /*before*/,
                  const AddedToken* /*after*/, std::vector<Token>* /*tokens*/) const override {}
};

VocabularyEntry Word(const std::string& text) { return {text, text, false}; }
VocabularyEntry Spelled(const std::string& name, const std::string& text) {
  return {name, text, false};
}
VocabularyEntry Mark(const std::string& name) { return {name, "", true}; }
const VocabularyEntry kUnused;

Words Tokens(std::vector<VocabularyEntry> entries, std::optional<Token> bos = {},
             std::vector<Token> eos = {}) {
  Vocabulary vocabulary;
  vocabulary.entries = std::move(entries);
  vocabulary.bos = bos;
  vocabulary.eos = std::move(eos);
  return Words(std::move(vocabulary));
}

TEST(MatchVocabularies, EqualTextUnderOtherIds) {
  const Words target = Tokens({Mark("<s>"), Word("a"), Spelled("\u2581the", " the"), Word("b")});
  const Words draft =
      Tokens({Word("b"), kUnused, Spelled("\u0120the", " the"), Word("a"), Mark("<s>")});
  const VocabularyMatch match = MatchVocabularies(target, draft);
  EXPECT_THAT(match.same, ElementsAre(4, 3, 2, 0));
  EXPECT_EQ(match.read, match.same);
  EXPECT_EQ(match.words, 1);
  EXPECT_EQ(match.shared, 1);
}

TEST(MatchVocabularies, WhatTheDraftLacksItReadsAsItsEnd) {
  const Words target = Tokens({Word("gather"), Word("zz"), Mark("<|tool|>"), kUnused, Word("her")});
  const Words draft =
      Tokens({Word("r"), Word("her"), Word(">"), Mark("er"), Mark("l|>"), Mark("<s>")}, 5);
  const VocabularyMatch match = MatchVocabularies(target, draft);
  EXPECT_THAT(match.same, ElementsAre(-1, -1, -1, -1, 1));
  EXPECT_THAT(match.read, ElementsAre(1, 5, 2, 5, 1));
  EXPECT_EQ(match.words, 3);
  EXPECT_EQ(match.shared, 1);
}

// SentencePiece has bytes beside its pieces, and of some characters both.
TEST(MatchVocabularies, PiecesGoBeforeBytes) {
  const Words pieces = Tokens({Spelled("<0x0A>", "\n"), Spelled("<0x41>", "A"), Word("A")});
  const Words bytes = Tokens({Word("A"), Spelled("\u010A", "\n")});
  EXPECT_THAT(MatchVocabularies(pieces, bytes).same, ElementsAre(1, -1, 0));
  EXPECT_THAT(MatchVocabularies(pieces, bytes).read, ElementsAre(1, 0, 0));
  EXPECT_THAT(MatchVocabularies(bytes, pieces).same, ElementsAre(2, 0));
  EXPECT_THAT(MatchVocabularies(pieces, pieces).same, ElementsAre(0, 1, 2));
}

TEST(MatchVocabularies, NoTokenOfTheDraftStandsForTwo) {
  // Added tokens may have the text of others.
  const Words target = Tokens({Spelled("\u0120\u0120", "  "), Word("  "), Word("x")});
  const Words draft = Tokens({Word("x"), Word("  ")});
  EXPECT_THAT(MatchVocabularies(target, draft).same, ElementsAre(-1, 1, 0));
  EXPECT_THAT(MatchVocabularies(target, draft).read, ElementsAre(1, 1, 0));
}

TEST(MatchVocabularies, MarksMayBeSpecialInOneOnly) {
  const Words target = Tokens({Mark("<tool>"), Word("<s>"), Word("a")});
  const Words draft = Tokens({Word("a"), Mark("<s>"), Word("<tool>")});
  EXPECT_THAT(MatchVocabularies(target, draft).same, ElementsAre(2, 1, 0));
  // Where there are both, like goes to like.
  const Words both = Tokens({Word("<tool>"), Mark("<tool>")});
  EXPECT_THAT(MatchVocabularies(target, both).same, ElementsAre(1, -1, -1));
}

TEST(MatchVocabularies, BeginsAndEndsOfOtherNamesArePairedByTheirRole) {
  const Words target =
      Tokens({Mark("<|begin|>"), Mark("<|turn|>"), Mark("<|end|>"), Mark("<pad>")}, 0, {1, 2});
  const Words draft = Tokens({Mark("</s>"), Mark("<s>"), Mark("<unk>")}, 1, {0});
  EXPECT_THAT(MatchVocabularies(target, draft).same, ElementsAre(1, 0, -1, -1));
  EXPECT_THAT(MatchVocabularies(draft, target).same, ElementsAre(1, 0, -1));
  // Names go before roles.
  const Words other = Tokens({Mark("<|end|>"), Mark("<s>"), Mark("<eot>")}, 1, {0, 2});
  EXPECT_THAT(MatchVocabularies(target, other).same, ElementsAre(1, 2, 0, -1));
  // What begins texts may end them, too; a token stands for one only.
  const Words one = Tokens({Mark("<|text|>")}, 0, {0});
  EXPECT_THAT(MatchVocabularies(target, one).same, ElementsAre(0, -1, -1, -1));
}

TEST(CheckEnoughShared, SaysHowManyAndWhichAndWhatToDo) {
  std::vector<VocabularyEntry> words = {Mark("<s>")};
  for (int i = 10; i < 50; ++i) words.push_back(Word("w" + std::to_string(i)));
  const Words target = Tokens(words);
  words.resize(5);
  EXPECT_TRUE(CheckEnoughShared(MatchVocabularies(target, Tokens(words)), target).ok());
  words.erase(words.begin() + 2);
  words.push_back(Word("own"));
  const Status status = CheckEnoughShared(MatchVocabularies(target, Tokens(words)), target);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "the draft has another vocabulary than the target: of the target's 40 tokens of "
            "several bytes it shares 3 (not 2 'w11', 5 'w14', 6 'w15', for example), too few for "
            "drafting to pay; let it draft by text, take a draft of the target's family, or mode "
            "sssd, which drafts without a model");
}

}  // namespace
}  // namespace foretoken
