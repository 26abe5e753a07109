#include "weights/model_folder.h"
#include "tensor/tensor_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_testing.h"
#include "weights/weights_testing.h"

namespace foretoken {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string ErrorOf(const TemporaryFolder& folder) {
  const auto opened = ReadModelFolder(folder.path());
  return opened.ok() ? "no error" : opened.error().message;
}

std::string OneTensor(const std::string& name, float value) {
  SafetensorsBuilder builder;
  builder.Add(name, WeightFormat::kF32, {1}, {value});
  return builder.Build();
}

TEST(ModelFolderTest, OpensASingleFile) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", OneTensor("a", 5));
  auto opened = ReadModelFolder(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Checkpoint moved = std::move(opened).value();
  EXPECT_EQ(moved.config.json, "{}");
  EXPECT_EQ(moved.generation_config.json, "");
  ASSERT_NE(moved.Find("a"), nullptr);
  EXPECT_EQ(LoadElement(*moved.Find("a"), 0), 5);
  EXPECT_EQ(moved.Find("b"), nullptr);
}

TEST(ModelFolderTest, OpensShards) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("generation_config.json", "{\"eos_token_id\":2}");
  folder.Write("one.safetensors", OneTensor("a", 1));
  folder.Write("two.safetensors", OneTensor("b", 2));
  folder.Write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto opened = ReadModelFolder(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->generation_config.json, "{\"eos_token_id\":2}");
  EXPECT_EQ(LoadElement(*opened->Find("a"), 0), 1);
  EXPECT_EQ(LoadElement(*opened->Find("b"), 0), 2);

  folder.Write(kIndex, R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})");
  EXPECT_THAT(ErrorOf(folder), AllOf(HasSubstr("two.safetensors"), HasSubstr("lacks tensor 'c'")));
  folder.Write(kIndex, R"({"weight_map":{"a":"three.safetensors"}})");
  EXPECT_THAT(ErrorOf(folder),
              AllOf(HasSubstr("three.safetensors"), HasSubstr("cannot be opened")));
}

TEST(ModelFolderTest, RefusesAHostileIndex) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  for (const char* shard : {R"("../a.safetensors")", R"("/etc/passwd")", R"("..")", R"("")", "3",
                            R"("a\u0000b")", R"("a\\b")"}) {
    folder.Write(kIndex, std::string(R"({"weight_map":{"a":)") + shard + "}}");
    EXPECT_THAT(ErrorOf(folder), HasSubstr("not a plain file name")) << shard;
  }
  for (const char* index : {"", "[]", "{}", R"({"weight_map":[]})"}) {
    folder.Write(kIndex, index);
    EXPECT_THAT(ErrorOf(folder), AllOf(HasSubstr(kIndex), HasSubstr("weight_map"))) << index;
  }
}

TEST(ModelFolderTest, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(Checkpoint::Open(folder.path() / "absent").error().message,
              HasSubstr("no such model folder or GGUF file"));
  EXPECT_THAT(ErrorOf(folder), AllOf(HasSubstr("config.json"), HasSubstr("missing")));
  folder.Write("config.json", "{}");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("has neither model.safetensors nor"));
  folder.Write("config.json", std::string((16 << 20) + 1, ' '));
  EXPECT_THAT(ErrorOf(folder), HasSubstr("larger than 16 MiB"));
}

TEST(ModelFolderTest, RefusesATruncatedFile) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  const std::string whole = OneTensor("a", 1);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    folder.Write("model.safetensors", whole.substr(0, bytes));
    EXPECT_THAT(ErrorOf(folder), HasSubstr("model.safetensors")) << bytes;
  }
  folder.Write("model.safetensors", whole);
  EXPECT_EQ(ErrorOf(folder), "no error");
}

}  // namespace
}  // namespace foretoken
