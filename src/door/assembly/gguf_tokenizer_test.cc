#include "door/assembly/gguf_tokenizer.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <span>

#include "core/weights/gguf/gguf_file.h"
#include "core/weights/gguf/gguf_testing.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kShared =
    std::filesystem::path(FORETOKEN_SOURCE_DIR) / ".." / "shared" / "data";

/// Numbers as the value of an array of floats or of 32-bit integers.
template <typename T>
std::string Numbers(GgufType type, const std::vector<T>& numbers) {
  std::string bytes;
  GgufBuilder::Append(&bytes, static_cast<std::uint32_t>(type));
  GgufBuilder::Append<std::uint64_t>(&bytes, numbers.size());
  for (const T number : numbers) GgufBuilder::Append(&bytes, number);
  return bytes;
}

/// The keys of a small tokenizer of the kind "llama".
class Keys {
 public:
  Keys() {
    tokens_ = {"<unk>", "<s>", "</s>"};
    types_ = {2, 3, 3};
    for (int byte = 0; byte < 256; ++byte) {
      tokens_.push_back(fmt::format("<0x{:02X}>", byte));
      types_.push_back(6);
    }
    for (const char* word : {"\u2581", "a", "\u2581a"}) {
      tokens_.push_back(word);
      types_.push_back(1);
    }
    Text("model", "llama");
    Strings("tokens", tokens_);
    Key("token_type", GgufType::kArray, Numbers(GgufType::kInt32, types_));
    std::vector<float> scores(tokens_.size());
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
    Key("scores", GgufType::kArray, Numbers(GgufType::kFloat32, scores));
  }

  void Text(const std::string& name, std::string_view text) {
    std::string bytes;
    GgufBuilder::AppendString(&bytes, text);
    Key(name, GgufType::kString, bytes);
  }
  void Strings(const std::string& name, const std::vector<std::string>& texts) {
    std::string bytes;
    GgufBuilder::Append(&bytes, static_cast<std::uint32_t>(GgufType::kString));
    GgufBuilder::Append<std::uint64_t>(&bytes, texts.size());
    for (const std::string& text : texts) GgufBuilder::AppendString(&bytes, text);
    Key(name, GgufType::kArray, bytes);
  }
  template <typename T>
  void Number(const std::string& name, GgufType type, T value) {
    std::string bytes;
    GgufBuilder::Append(&bytes, value);
    Key(name, type, bytes);
  }
  /// Adds a key, or takes another value for it.
  void Key(const std::string& name, GgufType type, const std::string& value) {
    values_[(name.starts_with("chat_template") ? "tokenizer." : "tokenizer.ggml.") + name] = {
        type, value};
  }
  void Remove(const std::string& name) { values_.erase("tokenizer.ggml." + name); }

  Result<std::unique_ptr<Tokenizer>> Load() const {
    GgufBuilder builder;
    for (const auto& [key, value] : values_)
      builder.Key(key, value.first, std::string_view(value.second));
    const std::string file = builder.File();
    const auto contents = ParseGguf(std::as_bytes(std::span(file)), "test.gguf");
    FT_CHECK(contents.ok(), "{}", contents.error().message);
    return TokenizerFromGguf(contents->metadata, "test.gguf");
  }
  std::unique_ptr<Tokenizer> Must() const {
    auto loaded = Load();
    FT_CHECK(loaded.ok(), "{}", loaded.error().message);
    return std::move(loaded).value();
  }

 private:
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
  std::map<std::string, std::pair<GgufType, std::string>> values_;
};

constexpr Token kA = 3 + 256 + 1;

TEST(GgufTokenizer, ReadsEveryKey) {
  Keys keys;
  EXPECT_THAT(keys.Must()->Encode("a", true, false), ElementsAre(1, kA + 1));
  EXPECT_THAT(keys.Must()->eos(), ElementsAre(2));
  keys.Number<bool>("add_space_prefix", GgufType::kBool, false);
  EXPECT_THAT(keys.Must()->Encode("a", true, false), ElementsAre(1, kA));
  EXPECT_THAT(keys.Must()->Encode("a  a", false, false), ElementsAre(kA, kA - 1, kA + 1));
  keys.Number<bool>("remove_extra_whitespaces", GgufType::kBool, true);
  EXPECT_THAT(keys.Must()->Encode("a  a", false, false), ElementsAre(kA, kA + 1));
  keys.Number<bool>("add_bos_token", GgufType::kBool, false);
  EXPECT_EQ(keys.Must()->bos(), std::nullopt);
  keys.Number<bool>("add_bos_token", GgufType::kBool, true);
  keys.Number<std::uint32_t>("bos_token_id", GgufType::kUint32, 2);
  EXPECT_EQ(keys.Must()->bos(), 2);
  keys.Number<std::uint64_t>("eos_token_id", GgufType::kUint64, 1);
  keys.Number<std::int32_t>("eot_token_id", GgufType::kInt32, kA);
  keys.Number<std::uint16_t>("eom_token_id", GgufType::kUint16, kA + 1);
  EXPECT_THAT(keys.Must()->eos(), ElementsAre(1, kA, kA + 1, 2));
  keys.Number<std::uint32_t>("unknown_token_id", GgufType::kUint32, kA - 1);
  EXPECT_TRUE(keys.Must()->IsSpecial(kA - 1));
  EXPECT_FALSE(keys.Must()->has_chat_template());
  // A prompt is there to be continued.
  keys.Number<bool>("add_eos_token", GgufType::kBool, true);
  EXPECT_NE(keys.Must()->Encode("a", true, false).back(), 1);
}

TEST(GgufTokenizer, DefectsAreNamed) {
  const auto with = [](const std::function<void(Keys*)>& change) {
    Keys keys;
    change(&keys);
    return keys;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<Keys, std::string> cases[] = {
      {with([](Keys* k) { k->Remove("model"); }), "tokenizer.ggml.model is missing"},
      {with([](Keys* k) { k->Remove("tokens"); }), "there are no tokens"},
      {with([](Keys* k) { k->Remove("token_type"); }), "262 tokens but 0 token types"},
      {with([](Keys* k) { k->Remove("scores"); }), "262 tokens but 0 scores"},
      {with([](Keys* k) { k->Number<bool>("model", GgufType::kBool, true); }),
       "the key tokenizer.ggml.model must be a string"},
      {with([](Keys* k) { k->Text("tokens", "a"); }), "tokenizer.ggml.tokens must be an array"},
      {with([](Keys* k) {
         k->Key("tokens", GgufType::kArray, Numbers<float>(GgufType::kFloat32, {1}));
       }),
       "tokenizer.ggml.tokens must be an array of strings"},
      {with([](Keys* k) { k->Strings("scores", {"1"}); }),
       "tokenizer.ggml.scores must be an array of numbers"},
      {with([](Keys* k) {
         k->Key("scores", GgufType::kArray, Numbers<float>(GgufType::kFloat32, {kNan}));
       }),
       "tokenizer.ggml.scores must hold finite numbers"},
      {with([](Keys* k) {
         k->Key("token_type", GgufType::kArray,
                Numbers<float>(GgufType::kFloat32, std::vector<float>(262, 1.5F)));
       }),
       "token 0, '<unk>', has the type 0"},
      {with([](Keys* k) { k->Number<std::uint32_t>("bos_token_id", GgufType::kUint32, 262); }),
       "has id 262; the file has 262 tokens"},
      {with([](Keys* k) { k->Number<std::int32_t>("eos_token_id", GgufType::kInt32, -1); }),
       "tokenizer.ggml.eos_token_id must be an integer from 0"},
      {with([](Keys* k) { k->Number<std::uint32_t>("add_bos_token", GgufType::kUint32, 1); }),
       "tokenizer.ggml.add_bos_token must be true or false"},
      {with([](Keys* k) { k->Text("model", "bert"); }), "of the kind 'bert'"},
  };
  for (const auto& [keys, part] : cases) {
    const auto loaded = keys.Load();
    ASSERT_FALSE(loaded.ok()) << part;
    EXPECT_THAT(loaded.error().message, HasSubstr("test.gguf"));
    EXPECT_THAT(loaded.error().message, HasSubstr(part));
  }
}

// As in Ollama's files.
TEST(GgufTokenizer, SeveralTokensMayEndATextByOneKey) {
  Keys keys;
  const std::vector<std::int32_t> ends = {1, kA, 2};
  keys.Key("eos_token_ids", GgufType::kArray, Numbers<std::int32_t>(GgufType::kInt32, ends));
  EXPECT_THAT(keys.Must()->eos(), testing::UnorderedElementsAre(1, 2, kA));
  EXPECT_TRUE(keys.Must()->IsSpecial(kA));
  keys.Key("eos_token_ids", GgufType::kArray, Numbers<float>(GgufType::kFloat32, {1.5F}));
  EXPECT_THAT(keys.Load().error().message, HasSubstr("eos_token_ids must hold ids of tokens"));
  keys.Key("eos_token_ids", GgufType::kArray, Numbers<std::int32_t>(GgufType::kInt32, {262}));
  EXPECT_THAT(keys.Load().error().message, HasSubstr("has id 262"));
}

TEST(GgufTokenizer, NamedChatTemplates) {
  Keys keys;
  keys.Text("chat_template", "usual");
  keys.Text("chat_template.tool_use", "with tools");
  keys.Strings("chat_templates", {"tool_use"});
  const auto loaded = keys.Load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(*(*loaded)->ChatText({}), "usual");
  EXPECT_EQ(*(*loaded)->ChatText({.tools = "[{}]"}), "with tools");
}

// The model completes texts all the same.
TEST(GgufTokenizer, AChatTemplateThatIsNoneRefusesChatsOnly) {
  Keys listed;
  listed.Strings("chat_template", {"a", "b"});
  Keys number;
  number.Number<bool>("chat_template", GgufType::kBool, true);
  for (const Keys& keys : {listed, number}) {
    const auto loaded = keys.Load();
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_FALSE((*loaded)->has_chat_template());
    EXPECT_THAT((*loaded)->ChatText({}).error().message,
                HasSubstr("the key tokenizer.chat_template must be a string"));
  }
  Keys bytes;
  bytes.Text("chat_template", "\xFF");
  EXPECT_THAT((*bytes.Load())->ChatText({}).error().message, HasSubstr("not valid UTF-8"));
}

// Files as others made them, against the folders of the same tokenizers.
TEST(GgufTokenizer, SharedFilesEqualTheirFolders) {
  if (!std::filesystem::exists(kShared / "tokenizers" / "gguf")) {
    GTEST_SKIP() << "the shared test data is not here";
  }
  for (const auto& [file, folder] :
       {std::pair{"ggml-vocab-gpt-2.gguf", "gpt2"}, {"ggml-vocab-llama-spm.gguf", "llama2"}}) {
    const auto path = kShared / "tokenizers" / "gguf" / file;
    const auto opened = GgufFile::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const auto loaded = TokenizerFromGguf(opened->metadata(), path.string());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const auto wanted = MustLoad(kShared / "tokenizers" / folder);
    ASSERT_NE(wanted, nullptr);
    EXPECT_EQ((*loaded)->fingerprint(), wanted->fingerprint()) << file;
    EXPECT_TRUE(CheckSameVocabulary(*wanted, **loaded).ok());
    EXPECT_EQ((*loaded)->bos(), wanted->bos());
    EXPECT_EQ((*loaded)->eos(), wanted->eos());
    EXPECT_EQ((*loaded)->DropsLeadingSpace(), wanted->DropsLeadingSpace());
    for (const char* text :
         {"Hello  world", " caf\xC3\xA9 123\n\n", "<s>a</s>", "\xF0\x9F\x98\x80"}) {
      for (const bool special : {false, true}) {
        EXPECT_EQ((*loaded)->Encode(text, true, special), wanted->Encode(text, true, special));
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
