#include "text/tokenizer/embedded_vocabulary.h"

#include <gmock/gmock.h>

#include <functional>

#include "text/tokenizer/bpe/bpe_family.h"
#include "text/tokenizer/bpe/byte_alphabet.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Embedded = EmbeddedVocabulary;

/// Owns what a vocabulary borrows.
class OwnedVocabulary {
 public:
  Embedded embedded;

  Token Add(std::string_view token, int type, float score = 0) {
    tokens_.push_back(std::make_unique<std::string>(token));
    embedded.tokens.push_back(*tokens_.back());
    embedded.types.push_back(type);
    if (embedded.model == "llama") embedded.scores.push_back(score);
    return static_cast<Token>(embedded.tokens.size() - 1);
  }

  Result<std::unique_ptr<Tokenizer>> Load() const {
    return TokenizerFromEmbedded(embedded, "test.gguf");
  }
  std::unique_ptr<Tokenizer> Must() const {
    auto loaded = Load();
    FT_CHECK(loaded.ok(), "{}", loaded.error().message);
    return std::move(loaded).value();
  }

 private:
  std::vector<std::unique_ptr<std::string>> tokens_;
};

constexpr Token kHell = 258;
constexpr Token kEmbeddedStart = 259;
constexpr Token kEmbeddedEnd = 260;
constexpr Token kEmbeddedTool = 261;

/// All bytes by their value, "he", "ll", "hell", two marks, "<tool>" and two fillers.
OwnedVocabulary SmallBpe() {
  OwnedVocabulary vocabulary;
  Embedded& embedded = vocabulary.embedded;
  embedded.model = "gpt2";
  embedded.pre = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.Add(SpellBytes(std::string(1, static_cast<char>(byte))), Embedded::kNormal);
  }
  for (const char* word : {"he", "ll", "hell"}) vocabulary.Add(word, Embedded::kNormal);
  for (const char* mark : {"<|im_start|>", "<|im_end|>"}) vocabulary.Add(mark, Embedded::kControl);
  vocabulary.Add("<tool>", Embedded::kUserDefined);
  for (const char* filler : {"[PAD262]", "[PAD263]"}) vocabulary.Add(filler, Embedded::kUnused);
  embedded.merges = {"h e", "l l", "he ll"};
  embedded.eos = kEmbeddedEnd;
  return vocabulary;
}

constexpr Token kEmbeddedByte0 = 3;
constexpr Token kEmbeddedA =
    kEmbeddedByte0 + 256;  // "\u2581a", then "\u2581", "a", "b", "ab", "\u2581ab"

OwnedVocabulary SmallSentencePiece() {
  OwnedVocabulary vocabulary;
  vocabulary.embedded.model = "llama";
  vocabulary.Add("<unk>", Embedded::kUnknown);
  vocabulary.Add("<s>", Embedded::kControl);
  vocabulary.Add("</s>", Embedded::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.Add(fmt::format("<0x{:02X}>", byte), Embedded::kByte);
  }
  float score = 0;
  for (const char* word : {"\u2581a", "\u2581", "a", "b", "ab", "\u2581ab"}) {
    vocabulary.Add(word, Embedded::kNormal, score--);
  }
  vocabulary.embedded.bos = 1;
  vocabulary.embedded.eos = 2;
  return vocabulary;
}

TEST(EmbeddedBpe, EncodesAndDecodes) {
  const auto tokenizer = SmallBpe().Must();
  EXPECT_EQ(tokenizer->vocabulary(), 262);  // Fillers are no tokens.
  EXPECT_THAT(tokenizer->Encode("hello", true, false), ElementsAre(kHell, 'o'));
  EXPECT_THAT(tokenizer->Encode("he<|im_end|><tool>", false, true),
              ElementsAre(256, kEmbeddedEnd, kEmbeddedTool));
  EXPECT_EQ(tokenizer->Encode("<|im_end|>", false, false).size(), 10U);
  EXPECT_TRUE(tokenizer->IsSpecial(kEmbeddedStart));
  EXPECT_FALSE(tokenizer->IsSpecial(kEmbeddedTool));
  EXPECT_EQ(tokenizer->TokenName(kEmbeddedStart), "<|im_start|>");
  EXPECT_FALSE(tokenizer->DropsLeadingSpace());
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_THAT(tokenizer->eos(), ElementsAre(kEmbeddedEnd));
  const std::string text = "hello\n<tool> caf\xC3\xA9 \xF0\x9F\x98\x80";
  EXPECT_EQ(DecodeAll(*tokenizer, tokenizer->Encode(text, true, true)), text);
}

TEST(EmbeddedBpe, BosIsAddedAsTheFileOrElseTheFamilySays) {
  OwnedVocabulary vocabulary = SmallBpe();
  vocabulary.embedded.bos = kEmbeddedStart;
  EXPECT_EQ(vocabulary.Must()->bos(), std::nullopt);
  vocabulary.embedded.add_bos = true;
  EXPECT_THAT(vocabulary.Must()->Encode("he", true, false), ElementsAre(kEmbeddedStart, 256));
  vocabulary.embedded.add_bos.reset();
  vocabulary.embedded.pre = "llama-bpe";
  EXPECT_EQ(vocabulary.Must()->bos(), kEmbeddedStart);
  vocabulary.embedded.add_bos = false;
  EXPECT_EQ(vocabulary.Must()->bos(), std::nullopt);
}

TEST(EmbeddedBpe, TheFamilyDecidesOnWords) {
  OwnedVocabulary vocabulary = SmallBpe();
  EXPECT_EQ(vocabulary.Must()->Encode("e\xCC\x81", false, false).size(), 3U);
  vocabulary.embedded.pre = "qwen2";
  EXPECT_EQ(vocabulary.Must()->Encode("e\xCC\x81", false, false).size(), 2U);  // NFC
  // A word that is a token needs no merges in Llama 3's family.
  vocabulary.embedded.merges = {"h e"};
  EXPECT_EQ(vocabulary.Must()->Encode("hell", false, false).size(), 3U);
  vocabulary.embedded.pre = "llama-bpe";
  EXPECT_THAT(vocabulary.Must()->Encode("hell", false, false), ElementsAre(kHell));
}

TEST(EmbeddedBpe, EveryFamilyLoads) {
  std::istringstream names(BpeFamilyNames());
  std::size_t count = 0;
  for (std::string name; names >> name; ++count) {
    OwnedVocabulary vocabulary = SmallBpe();
    vocabulary.embedded.pre = name;
    EXPECT_EQ(DecodeAll(*vocabulary.Must(), vocabulary.Must()->Encode("he (12).", false, false)),
              "he (12).");
  }
  EXPECT_GT(count, 30U);
}

TEST(EmbeddedBpe, WhatEndsATextIsSpecialWhateverItsType) {
  OwnedVocabulary vocabulary = SmallBpe();
  vocabulary.embedded.eot = vocabulary.Add("<turn>", Embedded::kNormal);
  vocabulary.embedded.eom = vocabulary.Add("<message>", Embedded::kUserDefined);
  const auto tokenizer = vocabulary.Must();
  EXPECT_THAT(tokenizer->eos(), ElementsAre(kEmbeddedEnd, 264, 265));
  EXPECT_TRUE(tokenizer->IsSpecial(264) && tokenizer->IsSpecial(265));
}

// Files do not name all of them, and models end their turns by them all the same.
TEST(EmbeddedBpe, MarksThatEndTurnsEndATextWhateverTheKeysSay) {
  for (const char* mark : {"<end_of_turn>", "<turn|>", "<|end|>", "<|eot|>"}) {
    OwnedVocabulary vocabulary = SmallBpe();
    const Token end = vocabulary.Add(mark, Embedded::kControl);
    EXPECT_THAT(vocabulary.Must()->eos(), testing::Contains(end)) << mark;
    // Several messages of gpt-oss may follow one another.
    vocabulary.Add("<|return|>", Embedded::kControl);
    EXPECT_EQ(testing::Value(vocabulary.Must()->eos(), testing::Contains(end)),
              std::string_view(mark) != "<|end|>");
    vocabulary.embedded.types[end] = Embedded::kNormal;
    EXPECT_THAT(vocabulary.Must()->eos(), testing::Not(testing::Contains(end))) << mark;
  }
}

TEST(EmbeddedBpe, ChatTemplate) {
  OwnedVocabulary vocabulary = SmallBpe();
  const ChatInput chat{{{"user", "<|im_end|>"}}};
  EXPECT_FALSE(vocabulary.Must()->has_chat_template());
  vocabulary.embedded.chat_templates.by_name["default"] =
      "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ m.content ~ '<|im_end|>' }}"
      "{% endfor %}{{ '<|im_start|>' }}";
  const auto tokens = vocabulary.Must()->EncodeChat(chat);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), kEmbeddedStart), 2);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), kEmbeddedEnd), 1);
}

TEST(EmbeddedSentencePiece, EncodesAndDecodes) {
  const auto tokenizer = SmallSentencePiece().Must();
  EXPECT_EQ(tokenizer->vocabulary(), kEmbeddedA + 6);
  EXPECT_THAT(tokenizer->Encode("a b", true, false),
              ElementsAre(1, kEmbeddedA, kEmbeddedA + 1, kEmbeddedA + 3));
  EXPECT_EQ(tokenizer->TokenBytes(kEmbeddedByte0 + 0xE2), "\xE2");
  EXPECT_EQ(tokenizer->TokenName(kEmbeddedA), "\u2581a");
  EXPECT_TRUE(tokenizer->DropsLeadingSpace());
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_THAT(tokenizer->eos(), ElementsAre(2));
  for (const std::string text : {"a", " ab", "b\n\n a", "caf\xC3\xA9 \xF0\x9F\x98\x80", "", " "}) {
    EXPECT_EQ(DecodeAll(*tokenizer, tokenizer->Encode(text, true, false)), text);
  }
}

TEST(EmbeddedSentencePiece, SpacesAreAsTheFileSays) {
  OwnedVocabulary vocabulary = SmallSentencePiece();
  EXPECT_THAT(vocabulary.Must()->Encode("ab  a", false, false),
              ElementsAre(kEmbeddedA + 5, kEmbeddedA + 1, kEmbeddedA));
  vocabulary.embedded.remove_extra_whitespaces = true;
  EXPECT_THAT(vocabulary.Must()->Encode("ab  a", false, false),
              ElementsAre(kEmbeddedA + 5, kEmbeddedA));
  vocabulary.embedded.add_space_prefix = false;
  EXPECT_THAT(vocabulary.Must()->Encode("ab a", false, false),
              ElementsAre(kEmbeddedA + 4, kEmbeddedA));
  EXPECT_FALSE(vocabulary.Must()->DropsLeadingSpace());
  vocabulary.embedded.add_bos = false;
  EXPECT_EQ(vocabulary.Must()->bos(), std::nullopt);
}

// Converters give tokens that a configuration names another type and a score of -1000.
TEST(EmbeddedSentencePiece, TheTypesOfConvertersMakeNoDifference) {
  const auto wanted = SmallSentencePiece().Must();
  OwnedVocabulary vocabulary = SmallSentencePiece();
  for (Token id = 0; id < 3; ++id) {
    vocabulary.embedded.types[id] = Embedded::kControl;
    vocabulary.embedded.scores[id] = -1000;
  }
  vocabulary.embedded.unknown = 0;
  EXPECT_EQ(vocabulary.Must()->fingerprint(), wanted->fingerprint());
  vocabulary.embedded.unknown.reset();  // It is found by its spelling.
  EXPECT_EQ(vocabulary.Must()->fingerprint(), wanted->fingerprint());
  vocabulary.embedded.types[2] = Embedded::kNormal;
  EXPECT_EQ(vocabulary.Must()->fingerprint(), wanted->fingerprint());
  EXPECT_EQ(vocabulary.Must()->eos(), wanted->eos());
  // The scores of other pieces rank the merges.
  vocabulary.embedded.scores.back() = -77;
  EXPECT_NE(vocabulary.Must()->fingerprint(), wanted->fingerprint());
}

// The library does not know its own unknown piece where another is spelled <unk>, and encodes no
// text with a character that is a control piece.
TEST(EmbeddedSentencePiece, AnyPieceMayBeTheUnknownOne) {
  OwnedVocabulary vocabulary;
  vocabulary.embedded.model = "llama";
  vocabulary.Add("<unk>", Embedded::kUnknown);
  vocabulary.Add("b", Embedded::kControl);
  for (const char* word : {"\u2581", "a", "what"}) {
    vocabulary.Add(word, Embedded::kNormal);
  }
  vocabulary.embedded.unknown = 4;
  const auto tokenizer = vocabulary.Must();
  EXPECT_TRUE(tokenizer->IsSpecial(0) && tokenizer->IsSpecial(4));
  for (const char* text : {"a", "b", "a b c", "what", "caf\xC3\xA9", "\xFF", "<unk>"}) {
    for (const Token token : tokenizer->Encode(text, false, false)) {
      EXPECT_GE(token, 1) << text;
      EXPECT_LT(token, 5) << text;
    }
  }
}

TEST(EmbeddedSentencePiece, TokensBehindThePiecesWereAdded) {
  OwnedVocabulary vocabulary = SmallSentencePiece();
  const Token sep = vocabulary.Add("<sep>", Embedded::kControl);
  const Token tool = vocabulary.Add("<tool>", Embedded::kUserDefined);
  vocabulary.Add("[PAD267]", Embedded::kUnused);
  const auto tokenizer = vocabulary.Must();
  EXPECT_EQ(tokenizer->vocabulary(), tool + 1);
  // Text begins anew behind them.
  EXPECT_THAT(tokenizer->Encode("a<sep>ab", false, true),
              ElementsAre(kEmbeddedA, sep, kEmbeddedA + 5));
  EXPECT_THAT(tokenizer->Encode("a<tool>ab", false, false),
              ElementsAre(kEmbeddedA, tool, kEmbeddedA + 5));
  EXPECT_TRUE(tokenizer->IsSpecial(sep));
  EXPECT_EQ(tokenizer->TokenBytes(tool), "<tool>");
}

// Marks that the model's makers defined are pieces: no space follows them.
TEST(EmbeddedSentencePiece, MarksAmongThePieces) {
  for (const int type : {Embedded::kUserDefined, Embedded::kNormal}) {
    OwnedVocabulary vocabulary = SmallSentencePiece();
    const Token mark = vocabulary.Add("<|im_start|>", type);
    const Token wide = vocabulary.Add("a  b", Embedded::kUserDefined);
    vocabulary.Add("zz", Embedded::kNormal, -9);
    const auto tokenizer = vocabulary.Must();
    EXPECT_TRUE(tokenizer->IsSpecial(mark));
    EXPECT_THAT(tokenizer->Encode("a<|im_start|>b", false, true),
                ElementsAre(kEmbeddedA, mark, kEmbeddedA + 3));
    EXPECT_EQ(tokenizer->TokenName(wide), "a\u2581\u2581b");
    EXPECT_THAT(tokenizer->Encode("ba  b", false, true),
                ElementsAre(kEmbeddedA + 1, kEmbeddedA + 3, wide));
  }
}

// Google's own files of Gemma 4 have three tokens twice, others fill their vocabularies up with
// empty ones. The ids that text is made of are those of the file without them.
TEST(EmbeddedVocabulary, NoTextIsMadeOfTokensThatAreThereTwiceOrEmpty) {
  for (const bool pieces : {false, true}) {
    const OwnedVocabulary plain = pieces ? SmallSentencePiece() : SmallBpe();
    const std::string_view word = pieces ? "\u2581ab" : "hell";
    OwnedVocabulary vocabulary = pieces ? SmallSentencePiece() : SmallBpe();
    const Token again = vocabulary.Add(word, Embedded::kNormal, 1);
    const Token empty = vocabulary.Add("", Embedded::kNormal);
    const Token third = vocabulary.Add(word, Embedded::kNormal, 2);
    vocabulary.Add(pieces ? "b" : "he", Embedded::kUnused);
    const auto last = vocabulary.Add("zz", Embedded::kNormal, -9);
    const auto tokenizer = vocabulary.Must();
    for (const char* text : {"hello ab hell", "a ab b", "ab"}) {
      EXPECT_EQ(tokenizer->Encode(text, true, false), plain.Must()->Encode(text, true, false));
    }
    EXPECT_EQ(tokenizer->vocabulary(), last + 1);
    EXPECT_EQ(tokenizer->TokenBytes(again), pieces ? " ab" : "hell");
    EXPECT_EQ(tokenizer->TokenBytes(third), tokenizer->TokenBytes(again));
    EXPECT_EQ(tokenizer->TokenBytes(empty), "");
    EXPECT_FALSE(tokenizer->IsSpecial(again) || tokenizer->IsSpecial(empty));
    EXPECT_THAT(tokenizer->notes(),
                ElementsAre(HasSubstr(fmt::format("('{}', token {}, first)", word, again)),
                            HasSubstr(fmt::format("(token {} first)", empty))));
    EXPECT_THAT(plain.Must()->notes(), testing::IsEmpty());
  }
}

// A character that stands alone begins words, so the wrong one of two would change every text.
TEST(EmbeddedVocabulary, ACharacterMayBeThereTwice) {
  OwnedVocabulary vocabulary = SmallBpe();
  vocabulary.Add("h", Embedded::kNormal);
  EXPECT_THAT(vocabulary.Must()->Encode("hello", true, false), ElementsAre(kHell, 'o'));
  EXPECT_THAT(vocabulary.Must()->Encode("h", true, false), ElementsAre('h'));

  OwnedVocabulary characters = SmallSentencePiece();
  characters.embedded.model = "gemma4";
  characters.embedded.merges = {"a b", "\u2581 ab"};
  const auto plain = characters.Must()->Encode("ab a", false, false);
  for (const char* again : {"a", "\u2581", "<0x41>", "ab"})
    characters.Add(again, Embedded::kNormal);
  EXPECT_EQ(characters.Must()->Encode("ab a", false, false), plain);
  EXPECT_THAT(characters.Must()->Encode("A", false, false), ElementsAre(kEmbeddedByte0 + 'A'));
}

// Where two tokens have one spelling, texts get the mark, above all one that a key names; a model
// that writes the other means the same.
TEST(EmbeddedVocabulary, OfTwoTheMarkIsMadeOfText) {
  for (const bool pieces : {false, true}) {
    OwnedVocabulary vocabulary = pieces ? SmallSentencePiece() : SmallBpe();
    const Token text = vocabulary.Add("<turn>", Embedded::kNormal);
    const Token mark = vocabulary.Add("<turn>", Embedded::kControl);
    const Token further = vocabulary.Add("<turn>", Embedded::kControl);
    const Token filler = vocabulary.Add("zz", Embedded::kNormal, -9);
    ASSERT_LT(further, filler);
    EXPECT_EQ(vocabulary.Must()->Encode("<turn>", false, true).back(), mark);
    vocabulary.embedded.eot = further;
    const auto tokenizer = vocabulary.Must();
    EXPECT_EQ(tokenizer->Encode("<turn>", false, true).back(), further);
    for (const Token token : {text, mark, further}) {
      EXPECT_THAT(tokenizer->eos(), testing::Contains(token)) << pieces;
      EXPECT_TRUE(tokenizer->IsSpecial(token));
      EXPECT_EQ(tokenizer->TokenBytes(token), "");
    }
  }
}

// As in files of before there was the key.
TEST(EmbeddedVocabulary, WithoutAPreTokenizerItIsTheDefault) {
  OwnedVocabulary named = SmallBpe();
  named.embedded.pre = "default";
  OwnedVocabulary unnamed = SmallBpe();
  unnamed.embedded.pre = "";
  const auto expected = named.Must();
  const auto tokenizer = unnamed.Must();
  EXPECT_THAT(expected->notes(), testing::IsEmpty());
  EXPECT_THAT(tokenizer->notes(),
              testing::ElementsAre(HasSubstr("names no pre-tokenizer (tokenizer.ggml.pre)")));
  EXPECT_EQ(tokenizer->fingerprint(), expected->fingerprint());
}

TEST(EmbeddedVocabulary, DefectsAreNamed) {
  using Change = std::function<void(OwnedVocabulary*)>;
  const auto bpe = [](const Change& change) {
    OwnedVocabulary vocabulary = SmallBpe();
    change(&vocabulary);
    return vocabulary;
  };
  const auto pieces = [](const Change& change) {
    OwnedVocabulary vocabulary = SmallSentencePiece();
    change(&vocabulary);
    return vocabulary;
  };
  const std::pair<OwnedVocabulary, std::string> cases[] = {
      {OwnedVocabulary(), "there are no tokens"},
      {bpe([](OwnedVocabulary* v) { v->embedded.model = "t5"; }), "of the kind 't5'"},
      {bpe([](OwnedVocabulary* v) { v->embedded.pre = "what"; }), "names the pre-tokenizer 'what'"},
      {bpe([](OwnedVocabulary* v) { v->embedded.types.pop_back(); }),
       "264 tokens but 263 token types"},
      {bpe([](OwnedVocabulary* v) { v->embedded.types[5] = 7; }),
       "token 5, '\u0105', has the type 7"},
      {bpe([](OwnedVocabulary* v) { v->embedded.tokens[kEmbeddedEnd] = ""; }),
       "the end-of-sequence token has id 260, whose spelling is empty"},
      {bpe([](OwnedVocabulary* v) { v->embedded.tokens[5] = "\xFF"; }),
       "token 5 is not valid UTF-8"},
      {bpe([](OwnedVocabulary* v) { v->Add(std::string(600, 'x'), Embedded::kControl); }),
       "token 264 has 600 bytes"},
      {bpe([](OwnedVocabulary* v) { v->embedded.bos = 264; }),
       "beginning-of-sequence token has id 264"},
      {bpe([](OwnedVocabulary* v) { v->embedded.eom = -1; }), "end-of-message token has id -1"},
      {bpe([](OwnedVocabulary* v) { v->embedded.merges.clear(); }), "needs merges"},
      {bpe([](OwnedVocabulary* v) { v->embedded.merges[1] = "ll"; }),
       "the merge 'll' is not two tokens"},
      {bpe([](OwnedVocabulary* v) { v->embedded.merges[1] = "l l l"; }),
       "'l l l' is not two tokens"},
      {bpe([](OwnedVocabulary* v) { v->embedded.merges[1] = "q q"; }), "merge 1 ('q' with 'q')"},
      {pieces([](OwnedVocabulary* v) { v->embedded.scores.pop_back(); }),
       "265 tokens but 264 scores"},
      {pieces([](OwnedVocabulary* v) {
         v->embedded.types[0] = Embedded::kControl;
         v->embedded.tokens[0] = "<none>";
       }),
       "no token stands for unknown text"},
      {pieces([](OwnedVocabulary* v) { v->embedded.types[3] = Embedded::kNormal; }),
       "all 256 byte pieces"},
  };
  for (const auto& [vocabulary, part] : cases) {
    const auto loaded = vocabulary.Load();
    ASSERT_FALSE(loaded.ok()) << part;
    EXPECT_THAT(loaded.error().message, HasSubstr("test.gguf"));
    EXPECT_THAT(loaded.error().message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace foretoken
