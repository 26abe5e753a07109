#include "hub/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

std::string Refusal(std::string_view text) {
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

TEST(ModelName, LeadsNowhereElse) {
  for (const char* text : {"", "/", "org/", "/name", "org/name/more", "org//name", "..", "../name",
                           "org/..", "org/na--me", "-org/name", "org/name.", "org/name.git",
                           "or g/name", "org/näme", "org/name\n"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("is no model's name")) << text;
  }
  EXPECT_THAT(Refusal(std::string(60, 'a') + "/" + std::string(60, 'b')),
              HasSubstr("is no model's name"));
  for (const char* text : {"org/name@", "org/name@../up", "org/name@a//b", "org/name@/a",
                           "org/name@a b", "org/name@a@b"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("names no branch, tag or commit")) << text;
  }
  for (const char* text : {"org/name:", "org/name:../a.gguf", "org/name:/a.gguf",
                           "org/name:a//b.gguf", "org/name:a\\b.gguf", "org/name:a\x01.gguf"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("names no file or quantisation")) << text;
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
