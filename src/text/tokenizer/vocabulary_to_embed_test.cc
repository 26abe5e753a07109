#include "text/tokenizer/vocabulary_to_embed.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/files/temporary_testing.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kSource = FORETOKEN_SOURCE_DIR;
constexpr std::string_view kText = "It's 12345 caf\xC3\xA9s,  isn't it?\n\n<|im_end|>  Yes \t42.";

/// Reads a folder's tokenizer, and as a model file would have it; both must do the same.
void CheckFolder(const std::filesystem::path& folder, const std::string& pre) {
  const auto tokenizer = MustLoad(folder);
  const int outputs = tokenizer->vocabulary() + 3;
  const auto read = ReadVocabularyToEmbed(folder, outputs, tokenizer->eos());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->pre, pre);
  EXPECT_EQ(std::ssize(read->tokens), outputs);
  EXPECT_EQ(read->types.back(), EmbeddedVocabulary::kUnused);
  const auto again = TokenizerFromEmbedded(read->View(), "m.gguf");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ((*again)->bos(), tokenizer->bos());
  EXPECT_THAT((*again)->eos(), ::testing::IsSupersetOf(tokenizer->eos()));
  EXPECT_EQ((*again)->has_chat_template(), tokenizer->has_chat_template());
  for (const bool special : {false, true}) {
    EXPECT_EQ((*again)->Encode(kText, true, special), tokenizer->Encode(kText, true, special));
  }
}

TEST(VocabularyToEmbed, BundledModels) {
  for (const char* name : {"demo-target", "demo-draft"}) {
    CheckFolder(kSource / "models" / name, "default");
  }
}

TEST(VocabularyToEmbed, RealTokenizers) {
  const auto shared = kSource / ".." / "shared" / "data" / "tokenizers";
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << "the shared test data is not here";
  CheckFolder(shared / "llama2", "default");
  CheckFolder(shared / "gpt2", "gpt-2");
  CheckFolder(shared / "smollm2", "smollm");
  CheckFolder(shared / "qwen2", "qwen2");
  const auto ranks = ReadVocabularyToEmbed(shared / "llama3", 128256, {});
  ASSERT_FALSE(ranks.ok());
  EXPECT_THAT(ranks.error().message, HasSubstr("neither tokenizer.json"));
}

TEST(VocabularyToEmbed, WordsThatHaveNoName) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "tokenizer.json") << R"({
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "decoder": {"type": "ByteLevel"}})";
  ASSERT_TRUE(LoadTokenizerFolder(folder.path()).ok());
  const auto read = ReadVocabularyToEmbed(folder.path(), 3, {});
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("how it cuts texts into words has no name"));
}

}  // namespace
}  // namespace foretoken
