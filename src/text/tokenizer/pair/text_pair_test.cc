#include "text/tokenizer/pair/text_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/text/utf8.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using testing::ElementsAreArray;
using testing::IsEmpty;

const std::filesystem::path kRoot = FORETOKEN_SOURCE_DIR;

// Prose, numbers, spaces, code, three scripts, and characters of four bytes.
constexpr const char* kTexts[] = {
    "Once upon a time, there was a little girl named Lily. She had 1234 red balls!\n\n\"Hi,\" she "
    "said.  Two spaces, and   three.",
    "for (int i = 0; i < 10; ++i) {\n\treturn x[i] == 'a' ? 3.14 : -7;\n    }\n",
    "Ein Mädchen äß süße Äpfel – “naïve” café… 你好，世界。这是一个没有空格的很长的句子，"
    "它还在继续下去，一直到这里才结束。 Привет, мир! \U0001F600\U0001F680 done",
    " begins with a space, ends with one ",
};

std::shared_ptr<const Tokenizer> SharedBundled() {
  static const std::shared_ptr<const Tokenizer> tokenizer = MustLoad(kRoot / "models/demo-target");
  return tokenizer;
}

// Pairs of the bundled tokenizer with itself and, where the shared data is, of real ones of each
// kind.
const std::vector<std::shared_ptr<const TextPair>>& AllPairs() {
  static const auto pairs = [] {
    std::vector<std::shared_ptr<const Tokenizer>> all = {SharedBundled()};
    const std::filesystem::path shared = kRoot / "../shared/data/tokenizers";
    for (const char* name : {"llama2", "gpt2", "smollm2"}) {
      if (std::filesystem::exists(shared / name)) all.push_back(MustLoad(shared / name));
    }
    std::vector<std::shared_ptr<const TextPair>> made;
    for (const auto& target : all) {
      for (const auto& draft : all) made.push_back(MakeTextPair(target, draft));
    }
    return made;
  }();
  return pairs;
}

std::string BytesOf(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string bytes;
  for (const Token token : tokens) bytes += tokenizer.TokenBytes(token);
  if (tokenizer.DropsLeadingSpace() && bytes.starts_with(' ')) bytes.erase(0, 1);
  return bytes;
}

// However a text is cut in time, what the draft has read is the text, in tokens that decode to it,
// of which the settled ones stay; and it encodes as a whole text does.
TEST(TextOfTarget, IsTheTextThatTheTargetHas) {
  std::mt19937 random(7);
  for (const auto& pair : AllPairs()) {
    const auto& target = pair->target;
    const auto& draft = pair->draft;
    for (const std::string text : kTexts) {
      const std::vector<Token> tokens = target->Encode(text, true, false);
      TextOfTarget read;
      std::vector<Token> settled;
      for (std::size_t end = 1; end <= tokens.size(); end += 1 + random() % 4) {
        read.Read(*pair, std::span(tokens).first(end));
        const auto now = read.draft_text().tokens();
        ASSERT_GE(read.draft_text().settled(), settled.size());
        ASSERT_TRUE(std::equal(settled.begin(), settled.end(), now.begin()));
        settled.assign(now.begin(), now.begin() + read.draft_text().settled());
        ASSERT_LE(now.size() - settled.size(), RunningText::kMostOpen);
        ASSERT_EQ(BytesOf(*draft, now) + read.pending(),
                  BytesOf(*target, std::span(tokens).first(end)));
      }
      read.Read(*pair, tokens);
      EXPECT_THAT(read.draft_text().tokens(), ElementsAreArray(draft->Encode(text, true, false)))
          << text;
    }
  }
}

// What a draft says that is right becomes the target's own tokens, wherever the text is cut.
TEST(TargetTokensOf, GoOnBehindTheCommittedOnes) {
  for (const auto& pair : AllPairs()) {
    const auto& target = pair->target;
    const auto& draft = pair->draft;
    int right = 0;
    int places = 0;
    for (const std::string text : kTexts) {
      const std::vector<Token> tokens = target->Encode(text, true, false);
      const std::vector<Token> all = draft->Encode(text, true, false);
      TextOfTarget read;
      for (std::size_t end = 1; end <= tokens.size(); ++end) {
        const auto committed = std::span(tokens).first(end);
        read.Read(*pair, committed);
        const auto now = read.draft_text().tokens();
        // The draft can only go on where its own tokens end.
        if (now.size() > all.size() || !std::equal(now.begin(), now.end(), all.begin())) continue;
        const auto said = std::span(all).subspan(now.size());
        const std::vector<Token> found = TargetTokensOf(*pair, read, committed, said);
        const auto rest = std::span(tokens).subspan(end);
        ++places;
        right += std::ranges::equal(found, rest) ? 1 : 0;
      }
    }
    EXPECT_GT(places, 40);
    EXPECT_GE(right, places * 0.9);
  }
}

TEST(TextOfTarget, MarksOfBothAreReadAndOthersLeftOut) {
  const auto tokenizer = SharedBundled();
  const auto pair = MakeTextPair(tokenizer, tokenizer);
  const Token end = tokenizer->eos().front();
  std::vector<Token> tokens = tokenizer->Encode("One day", true, false);
  tokens.push_back(end);
  TextOfTarget read;
  read.Read(*pair, tokens);
  EXPECT_THAT(read.draft_text().tokens(), ElementsAreArray(tokens));
  EXPECT_EQ(read.draft_text().settled(), tokens.size());
  const std::vector<Token> said = {end, tokens[1]};
  EXPECT_THAT(TargetTokensOf(*pair, read, tokens, said), testing::ElementsAre(end));

  TextPair none = *pair;
  std::ranges::fill(none.marks, -1);
  TextOfTarget without;
  without.Read(none, tokens);
  EXPECT_THAT(without.draft_text().tokens(),
              ElementsAreArray(std::span(tokens).first(tokens.size() - 1)));
  EXPECT_THAT(TargetTokensOf(none, without, tokens, said), IsEmpty());
}

TEST(TargetTokensOf, ACharacterInHalvesIsGoneOnWith) {
  const auto tokenizer = SharedBundled();
  const auto pair = MakeTextPair(tokenizer, tokenizer);
  const std::vector<Token> whole = tokenizer->Encode("hi \U0001F600!", true, false);
  ASSERT_GT(whole.size(), 6U) << "of bytes";
  const auto half = std::span(whole).first(whole.size() - 3);
  TextOfTarget read;
  read.Read(*pair, half);
  EXPECT_EQ(read.pending(), "\xF0\x9F");
  const auto said = std::span(whole).subspan(read.draft_text().tokens().size());
  EXPECT_THAT(TargetTokensOf(*pair, read, half, said), ElementsAreArray(std::span(whole).last(3)));
  // It says another character.
  const std::vector<Token> other = tokenizer->Encode(" was", false, false);
  EXPECT_THAT(TargetTokensOf(*pair, read, half, other), IsEmpty());
}

}  // namespace
}  // namespace foretoken
