#include <gtest/gtest.h>

#include <random>

#include "base/text/utf8.h"
#include "foretoken/chat_format.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {
namespace {

constexpr Token kSpecial = 256;

/// Token i is the byte i; token 256 is special.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(bool drops_leading_space = false) : drops_(drops_leading_space) {
    for (int i = 0; i < 256; ++i) bytes_ += static_cast<char>(i);
  }
  int vocabulary() const override { return 257; }
  std::vector<Token> Encode(std::string_view text, bool, bool) const override {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string_view TokenBytes(Token token) const override {
    if (token == kSpecial) return {};
    return std::string_view(bytes_).substr(token, 1);
  }
  std::string_view TokenName(Token token) const override { return TokenBytes(token); }
  bool IsSpecial(Token token) const override { return token == kSpecial; }
  bool DropsLeadingSpace() const override { return drops_; }
  std::optional<Token> bos() const override { return std::nullopt; }
  std::vector<Token> eos() const override { return {}; }
  std::vector<std::string> notes() const override { return {}; }
  const std::string& fingerprint() const override { return bytes_; }
  Result<std::vector<Token>> EncodeChat(const ChatInput&) const override {
    return InvalidInput("no chat");
  }
  Result<std::string> ChatText(const ChatInput&) const override { return InvalidInput("no chat"); }
  const ChatFormat& chat_format() const override { return chat_format_; }
  void UseChatFormat(const ChatFormat& format) override { chat_format_ = format; }
  bool has_chat_template() const override { return false; }
  Status UseChatTemplate(std::string_view) override { return InvalidInput("no chat"); }

 private:
  std::string bytes_;
  bool drops_;
  ChatFormat chat_format_;
};

std::vector<std::string> Steps(std::string_view bytes) {
  const ByteTokenizer tokenizer;
  IncrementalDecoder decoder(&tokenizer);
  std::vector<std::string> steps;
  for (const Token token : tokenizer.Encode(bytes, false, false)) {
    steps.push_back(decoder.Push(token));
  }
  steps.push_back(decoder.Finish());
  return steps;
}

std::string Joined(std::string_view bytes) {
  std::string text;
  for (const std::string& step : Steps(bytes)) text += step;
  return text;
}

using Strings = std::vector<std::string>;

TEST(IncrementalDecoder, HoldsPartsOfCharactersBack) {
  EXPECT_EQ(Steps("a\xC3\xA9z"), (Strings{"a", "", "\xC3\xA9", "z", ""}));
  EXPECT_EQ(Steps("\xF0\x9F\x98\x80"), (Strings{"", "", "", "\xF0\x9F\x98\x80", ""}));
}

TEST(IncrementalDecoder, ReplacesBytesAsSoonAsTheyCannotBecomeACharacter) {
  EXPECT_EQ(Steps("\xFF!"), (Strings{"\uFFFD", "!", ""}));
  EXPECT_EQ(Steps("\xC3("), (Strings{"", "\uFFFD(", ""}));
  EXPECT_EQ(Steps("\xE2\x82"), (Strings{"", "", "\uFFFD"}));
  // A surrogate, an overlong form and a value beyond U+10FFFF, each byte on its own.
  EXPECT_EQ(Joined("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Joined("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(Joined("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  // The longest part that began like a character is one replacement.
  EXPECT_EQ(Joined("\xF0\x9F\x98"
                   "A"),
            "\uFFFD"
            "A");
}

TEST(IncrementalDecoder, DropsOneLeadingSpaceOfTheText) {
  const ByteTokenizer tokenizer(/*drops_leading_space=*/true);
  IncrementalDecoder decoder(&tokenizer);
  EXPECT_EQ(decoder.Push(kSpecial), "");
  EXPECT_EQ(decoder.Push(' '), "");
  EXPECT_EQ(decoder.Push(' '), " ");
  EXPECT_EQ(decoder.Push('a'), "a");
  EXPECT_EQ(decoder.Push(' '), " ");
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(IncrementalDecoder, AnyBytesGiveValidTextThatKeepsEveryCharacter) {
  std::mt19937 random(1);
  const std::string_view pool = "ab\x80\xBF\xC3\xA9\xE2\x82\xAC\xED\xA0\xF0\x9F\x98\x80\xF4\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) bytes += pool[random() % pool.size()];
    const std::string text = Joined(bytes);
    ASSERT_TRUE(IsUtf8(text));
    // Whatever is valid from the front comes out unchanged.
    const std::size_t valid = ValidUtf8Prefix(bytes);
    ASSERT_EQ(text.substr(0, valid), bytes.substr(0, valid));
    // A special token in between changes nothing.
    const ByteTokenizer tokenizer;
    IncrementalDecoder decoder(&tokenizer);
    std::string again;
    for (const Token token : tokenizer.Encode(bytes, false, false)) {
      again += decoder.Push(token) + decoder.Push(kSpecial);
    }
    ASSERT_EQ(again + decoder.Finish(), text);
  }
}

TEST(Utf8, AcceptsExactlyTheScalarValues) {
  int valid = 0;
  for (unsigned code = 0; code < 0x120000; ++code) {
    std::string text;
    if (code < 0x80) {
      text = static_cast<char>(code);
    } else if (code < 0x800) {
      text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      text = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    } else {
      text = {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
              static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    }
    valid += IsUtf8(text) ? 1 : 0;
  }
  EXPECT_EQ(valid, 0x110000 - 0x800);
}

TEST(ReadingAfter, MarksAreFoundWhereverTokensEnd) {
  for (const bool drops : {false, true}) {  // The space that texts begin with makes no difference.
    ByteTokenizer tokenizer(drops);
    tokenizer.UseChatFormat(FindChatFormat("<think></think>"));
    const auto thinks = [&](std::string_view prompt) {
      return ReadingAfter(tokenizer, tokenizer.Encode(prompt, false, false)).in_reasoning;
    };
    EXPECT_TRUE(thinks("<think>"));
    EXPECT_TRUE(thinks("\xF0\x9F\x98\x80 What is it?<think>\n"));
    EXPECT_FALSE(thinks("What is it?<think>\n</think>\n\n"));
    EXPECT_FALSE(thinks("What is it?"));
    EXPECT_FALSE(thinks(""));
    tokenizer.UseChatFormat(FindChatFormat("<|channel>thought\n<channel|>"));
    EXPECT_FALSE(thinks("<think>"));
  }
}

}  // namespace
}  // namespace foretoken
