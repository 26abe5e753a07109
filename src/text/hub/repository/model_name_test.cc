#include "text/hub/repository/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

std::string NameRefusal(std::string_view text) {
  const Result<ModelName> name = ParseModelName(text);
  return name.ok() ? "accepted" : name.error().message;
}

TEST(ModelName, HasARepositoryARevisionAndAPart) {
  const ModelName plain = ParseModelName("some-org/Some.Model-1B_x").value();
  EXPECT_EQ(plain.repository, "some-org/Some.Model-1B_x");
  EXPECT_EQ(plain.revision(), "main");
  EXPECT_FALSE(plain.named_revision.has_value());
  EXPECT_EQ(plain.part, "");

  const ModelName quantised = ParseModelName("org/name@refs/pr/1:Q4_K_M").value();
  EXPECT_EQ(quantised.repository, "org/name");
  EXPECT_EQ(quantised.revision(), "refs/pr/1");
  EXPECT_EQ(quantised.part, "Q4_K_M");
  EXPECT_FALSE(quantised.names_file());
  EXPECT_EQ(quantised.Text(), "org/name@refs/pr/1:Q4_K_M");

  // The file may have what separates the others.
  const ModelName file = ParseModelName("old-name:folder/a@b:c.GGUF").value();
  EXPECT_EQ(file.repository, "old-name");
  EXPECT_EQ(file.part, "folder/a@b:c.GGUF");
  EXPECT_TRUE(file.names_file());
}

// As people paste them.
TEST(ModelName, MayBeAnAddress) {
  const auto text = [](std::string_view pasted) {
    const Result<ModelName> name = ParseModelName(pasted);
    return name.ok() ? name->Text() : name.error().message;
  };
  for (const char* plain :
       {"hf.co/org/name", "huggingface.co/org/name", "https://huggingface.co/org/name",
        "https://huggingface.co/org/name/", "http://hf.co/org/name", "org/name/", "org/name:latest",
        "hf.co/org/name:latest", "https://www.huggingface.co/org/name?library=llama-cpp-python",
        "https://huggingface.co/org/name/tree/main", "https://huggingface.co/org/name/tree/main/",
        "https://huggingface.co/org/name/blob/main/config.json",
        "https://huggingface.co/org/name/resolve/main/model-00001-of-00002.safetensors",
        "https://huggingface.co/org/name#usage"}) {
    EXPECT_EQ(text(plain), "org/name") << plain;
  }
  EXPECT_EQ(text("hf.co/org/name:q4_k_m"), "org/name:q4_k_m");
  EXPECT_EQ(text("hf.co/org/name@v1:Q8_0"), "org/name@v1:Q8_0");
  EXPECT_EQ(text("https://huggingface.co/org/name/tree/v1.0"), "org/name@v1.0");
  EXPECT_EQ(text("https://huggingface.co/org/name/tree/refs%2Fpr%2F1"), "org/name@refs/pr/1");
  EXPECT_EQ(text("https://huggingface.co/org/name/tree/main/Q4_K_M"), "org/name:Q4_K_M");
  EXPECT_EQ(text("https://huggingface.co/org/name/blob/main/m-Q4_K_M.gguf"),
            "org/name:m-Q4_K_M.gguf");
  EXPECT_EQ(text("https://huggingface.co/org/name/resolve/v1/sub/m%20x.gguf?download=true"),
            "org/name@v1:sub/m x.gguf");
  EXPECT_THAT(NameRefusal("https://example.com/org/name"), HasSubstr("no address of hf.co"));
  EXPECT_THAT(NameRefusal("https://huggingface.co/datasets/org/name"),
              HasSubstr("no model's name"));
  EXPECT_THAT(NameRefusal("https://huggingface.co/org/name/resolve/main/..%2F..%2Fx.gguf"),
              HasSubstr("names no file"));
  EXPECT_THAT(NameRefusal("https://huggingface.co/"), HasSubstr("no model's name"));
}

TEST(ModelName, LeadsNowhereElse) {
  for (const char* text : {"", "/", "org/", "/name", "org/name/more", "org//name", "..", "../name",
                           "org/..", "org/na--me", "-org/name", "org/name.", "org/name.git",
                           "or g/name", "org/näme", "org/name\n"}) {
    EXPECT_THAT(NameRefusal(text), HasSubstr("is no model's name")) << text;
  }
  EXPECT_THAT(NameRefusal(std::string(60, 'a') + "/" + std::string(60, 'b')),
              HasSubstr("is no model's name"));
  for (const char* text : {"org/name@", "org/name@../up", "org/name@a//b", "org/name@/a",
                           "org/name@a b", "org/name@a@b"}) {
    EXPECT_THAT(NameRefusal(text), HasSubstr("names no branch, tag or commit")) << text;
  }
  for (const char* text : {"org/name:", "org/name:../a.gguf", "org/name:/a.gguf",
                           "org/name:a//b.gguf", "org/name:a\\b.gguf", "org/name:a\x01.gguf"}) {
    EXPECT_THAT(NameRefusal(text), HasSubstr("names no file or quantisation")) << text;
  }
}

TEST(ModelName, SafePathsStayBelowTheirFolder) {
  EXPECT_TRUE(IsSafePath("a"));
  EXPECT_TRUE(IsSafePath("a/b c/..d/e."));
  EXPECT_FALSE(IsSafePath("a/../b"));
  EXPECT_FALSE(IsSafePath("a/."));
  EXPECT_FALSE(IsSafePath("a/"));
  EXPECT_FALSE(IsSafePath(std::string_view("a\0b", 3)));
  EXPECT_FALSE(IsSafePath(std::string(2000, 'a')));
}

TEST(ModelName, CommitsAreWholeHashes) {
  EXPECT_TRUE(IsCommit(std::string(40, 'a')));
  EXPECT_FALSE(IsCommit(std::string(40, 'A')));
  EXPECT_FALSE(IsCommit(std::string(39, '0')));
  EXPECT_FALSE(IsCommit("main"));
}

}  // namespace
}  // namespace foretoken
