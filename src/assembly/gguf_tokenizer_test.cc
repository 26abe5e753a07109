#include "assembly/gguf_tokenizer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tokenizer/tokenizer_testing.h"
#include "weights/gguf/gguf_file.h"
#include "weights/gguf/gguf_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kShared =
    std::filesystem::path(FORETOKEN_SOURCE_DIR) / ".." / "shared" / "data";

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
