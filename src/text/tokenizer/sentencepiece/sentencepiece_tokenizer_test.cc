#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <random>

#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string Bytes(int field, const std::string& content) {
  return Varint(static_cast<std::uint64_t>(field) << 3 | 2) + Varint(content.size()) + content;
}

std::string Number(int field, std::uint64_t value) {
  return Varint(static_cast<std::uint64_t>(field) << 3) + Varint(value);
}

std::string Piece(const std::string& spelling, float score, int type) {
  std::string bits(sizeof(score), '\0');
  std::memcpy(bits.data(), &score, sizeof(score));
  return Bytes(1, Bytes(1, spelling) + Varint(2 << 3 | 5) + bits + Number(3, type));
}

constexpr Token kMarkPiece = 3;
constexpr Token kFirstBytePiece = 5;
constexpr Token kWords = kFirstBytePiece + 256;

struct ModelOptions {
  int model_type = 2;
  std::string chars_map;
  std::string extra_piece;
};

/// <unk>, <s>, </s>, <|im_start|>, <|im_end|>, the bytes, then a few words.
std::string SmallModel(const ModelOptions& options = {}) {
  std::string file = Piece("<unk>", 0, SentencePiece::kUnknown) +
                     Piece("<s>", 0, SentencePiece::kControl) +
                     Piece("</s>", 0, SentencePiece::kControl) +
                     Piece("<|im_start|>", 0, SentencePiece::kUserDefined) +
                     Piece("<|im_end|>", 0, SentencePiece::kUserDefined);
  for (int byte = 0; byte < 256; ++byte) {
    file += Piece(fmt::format("<0x{:02X}>", byte), 0, SentencePiece::kByte);
  }
  float score = 0;
  for (const char* word : {"\u2581a", "\u2581", "a", "b", "ab", "\u2581ab"}) {
    file += Piece(word, score--, SentencePiece::kNormal);
  }
  file += options.extra_piece;
  file += Bytes(2, Number(3, static_cast<std::uint64_t>(options.model_type)) + Number(35, 1));
  return file + Bytes(3, Bytes(2, options.chars_map) + Number(3, 1) + Number(4, 0));
}

Result<std::unique_ptr<Tokenizer>> Load(std::string file, const TokenizerConfig& config = {}) {
  return LoadSentencePiece(std::move(file), "test.model", config);
}

std::unique_ptr<Tokenizer> MustLoadPieces(const TokenizerConfig& config = {}) {
  auto result = Load(SmallModel(), config);
  FT_CHECK(result.ok(), "{}", result.error().message);
  return std::move(result).value();
}

TEST(SentencePiece, EncodesAndDecodes) {
  const auto tokenizer = MustLoadPieces();
  EXPECT_EQ(tokenizer->vocabulary(), kWords + 6);
  EXPECT_THAT(tokenizer->Encode("a b", true, false),
              ElementsAre(1, kWords, kWords + 1, kWords + 3));
  EXPECT_EQ(tokenizer->TokenBytes(kWords), " a");
  EXPECT_EQ(tokenizer->TokenName(kWords), "\u2581a");
  EXPECT_EQ(tokenizer->TokenBytes(kFirstBytePiece + 0xE2), "\xE2");
  EXPECT_EQ(tokenizer->TokenBytes(0), "");
  EXPECT_TRUE(tokenizer->IsSpecial(1));
  EXPECT_TRUE(tokenizer->DropsLeadingSpace());
  EXPECT_THAT(tokenizer->eos(), ElementsAre(4, 2));
  for (const std::string text : {"a", " ab", "b\n\n a", "caf\xC3\xA9 \xF0\x9F\x98\x80", "", " "}) {
    EXPECT_EQ(DecodeAll(*tokenizer, tokenizer->Encode(text, true, false)), text);
  }
  // The library replaces what is not UTF-8.
  EXPECT_EQ(DecodeAll(*tokenizer, tokenizer->Encode("a\xFF", true, false)), "a\uFFFD");
}

TEST(SentencePiece, SpecialTokensOnlyWhereAsked) {
  const auto tokenizer = MustLoadPieces();
  const auto plain = tokenizer->Encode("a<|im_start|><s>", false, false);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), kMarkPiece), 0);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 1), 0);
  EXPECT_EQ(DecodeAll(*tokenizer, plain), "a<|im_start|><s>");
  EXPECT_THAT(tokenizer->Encode("a<|im_start|>b", false, true),
              ElementsAre(kWords, kMarkPiece, kWords + 3));
  // A space of its own goes before a mark that begins the text, as in the library.
  EXPECT_THAT(tokenizer->Encode("<|im_start|>b", false, true),
              ElementsAre(kWords + 1, kMarkPiece, kWords + 3));
}

TEST(SentencePiece, AddedTokensBeginTextAnewInLegacyMode) {
  TokenizerConfig config;
  AddedToken added;
  added.id = kWords + 6;
  added.content = "<sep>";
  added.special = true;
  config.added = {added};
  EXPECT_THAT(MustLoadPieces(config)->Encode("a<sep>ab", false, true),
              ElementsAre(kWords, kWords + 6, kWords + 5));
  config.legacy = false;
  EXPECT_THAT(MustLoadPieces(config)->Encode("a<sep>ab", false, true),
              ElementsAre(kWords, kWords + 6, kWords + 4));
  config.added[0].id = 3;
  const auto clash = Load(SmallModel(), config);
  ASSERT_FALSE(clash.ok());
  EXPECT_THAT(clash.error().message, HasSubstr("spells token 3 '<|im_start|>'"));
  config.added[0].id = 4'000'000;
  EXPECT_FALSE(Load(SmallModel(), config).ok());
}

TEST(SentencePiece, Chat) {
  TokenizerConfig config;
  EXPECT_FALSE(MustLoadPieces(config)->EncodeChat({}).ok());
  config.chat_templates.by_name["default"] = BuiltInChatTemplate("chatml").value();
  config.add_bos = false;
  const auto tokenizer = MustLoadPieces(config);
  ASSERT_TRUE(tokenizer->has_chat_template());
  const ChatInput chat{{{"b", "<|im_end|>"}}};
  const auto tokens = tokenizer->EncodeChat(chat);
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(std::vector<Token>(tokens->begin(), tokens->begin() + 4),
              ElementsAre(kWords + 1, kMarkPiece, kWords + 3, kFirstBytePiece + '\n'));
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 4), 1);
  EXPECT_FALSE(MustLoadPieces({})->ChatText(chat).ok());
  EXPECT_EQ(*tokenizer->ChatText(chat),
            "<|im_start|>b\n<|im_end|><|im_end|>\n<|im_start|>assistant\n");
}

TEST(SentencePiece, FingerprintsTellScoresApart) {
  const auto again = MustLoadPieces();
  EXPECT_EQ(MustLoadPieces()->fingerprint(), again->fingerprint());
  const auto other = Load(SmallModel({.extra_piece = Piece("zz", -9, 1)}));
  const auto scored = Load(SmallModel({.extra_piece = Piece("zz", -8, 1)}));
  ASSERT_TRUE(other.ok() && scored.ok());
  EXPECT_NE((*other)->fingerprint(), again->fingerprint());
  EXPECT_NE((*other)->fingerprint(), (*scored)->fingerprint());
}

TEST(SentencePiece, HostileModelsAreRefusedQuietly) {
  const auto map = [](std::initializer_list<std::uint32_t> units, const std::string& texts) {
    std::string bytes;
    for (const std::uint32_t value : units) {
      for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
    }
    return bytes + texts;
  };
  const std::pair<ModelOptions, std::string> cases[] = {
      {{.model_type = 3}, "model_type 3"},
      {{.extra_piece = Piece("a", 0, 1)}, "refused by the SentencePiece library"},
      {{.extra_piece = Piece("<unk2>", 0, SentencePiece::kUnknown)},
       "refused by the SentencePiece"},
      {{.extra_piece = Piece("", 0, 1)}, "piece 267"},
      {{.extra_piece = Piece("\xFF", 0, 1)}, "piece 267"},
      {{.extra_piece = Piece("x", std::numeric_limits<float>::quiet_NaN(), 1)}, "piece 267"},
      {{.extra_piece = Piece(std::string(5000, 'x'), 0, 1)}, "piece 267"},
      {{.extra_piece = Piece("x", 0, 9)}, "truncated or damaged"},
      {{.chars_map = "abc"}, "normalisation map"},
      // The root's children would lie far outside of its one unit.
      {{.chars_map = map({4, 0xFFFFF << 10}, std::string("x\0", 2))}, "normalisation map"},
  };
  ::testing::internal::CaptureStderr();
  for (const auto& [options, part] : cases) {
    const auto result = Load(SmallModel(options));
    ASSERT_FALSE(result.ok()) << part;
    EXPECT_THAT(result.error().message, HasSubstr("test.model"));
    EXPECT_THAT(result.error().message, HasSubstr(part));
  }
  const std::string model = SmallModel();
  for (std::size_t size = 0; size < model.size(); size += 7) {
    EXPECT_FALSE(Load(model.substr(0, size)).ok()) << size;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = model;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto result = Load(damaged);
    if (result.ok()) {
      for (const Token token : (*result)->Encode("a b caf\xC3\xA9", true, true)) {
        ASSERT_LT(token, (*result)->vocabulary());
      }
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace foretoken
