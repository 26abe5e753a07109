#include "core/weights/model_folder.h"
#include "core/tensor/tensor_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/temporary_testing.h"
#include "core/weights/torch/torch_testing.h"
#include "core/weights/weights_testing.h"

namespace foretoken {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string FolderError(const TemporaryFolder& folder) {
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
  EXPECT_THAT(FolderError(folder),
              AllOf(HasSubstr("two.safetensors"), HasSubstr("lacks tensor 'c'")));
  folder.Write(kIndex, R"({"weight_map":{"a":"three.safetensors"}})");
  EXPECT_THAT(FolderError(folder),
              AllOf(HasSubstr("three.safetensors"), HasSubstr("cannot be opened")));
}

TEST(ModelFolderTest, OpensPickledTensorsWhereThereIsNothingElse) {
  const auto pickled = [](const std::string& name, const std::string& number) {
    ZipBuilder zip;
    zip.Add("archive/data.pkl",
            Pickled::Dictionary(Pickled::Text(name) +
                                Pickled::Tensor("FloatStorage", "0", 1, 0, {1}, {1})));
    zip.Add("archive/data/0", number);
    return zip.Build();
  };
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("pytorch_model.bin", pickled("a", std::string("\0\0\xA0\x40", 4)));
  const auto number = [&](const char* name) {
    const auto opened = ReadModelFolder(folder.path());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return opened.ok() ? LoadElement(*opened->Find(name), 0) : 0;
  };
  EXPECT_EQ(number("a"), 5);
  folder.Write("one.bin", pickled("a", std::string("\0\0\x80\x3F", 4)));
  folder.Write("two.bin", pickled("b", std::string("\0\0\x00\x40", 4)));
  folder.Write("pytorch_model.bin.index.json",
               R"({"metadata":{},"weight_map":{"a":"one.bin","b":"two.bin"}})");
  EXPECT_EQ(number("a"), 1);
  EXPECT_EQ(number("b"), 2);
  folder.Write("model.safetensors", OneTensor("a", 3));
  EXPECT_EQ(number("a"), 3);
}

// Two blocks, the second with a larger scale: element i of each is number i of the sixteen.
TEST(ModelFolderTest, MakesBlocksOfPairsInAnyShard) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  std::string blocks;
  for (int i = 0; i < 32; ++i) blocks += static_cast<char>(0x10 + 0x22 * (i % 8));
  folder.Write(
      "one.safetensors",
      FrameSafetensors(R"({"a_blocks":{"dtype":"U8","shape":[1,2,16],"data_offsets":[0,32]}})",
                       blocks));
  folder.Write("two.safetensors",
               FrameSafetensors(R"({"a_scales":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]}})",
                                "\x7f\x81"));
  folder.Write(kIndex,
               R"({"weight_map":{"a_blocks":"one.safetensors","a_scales":"two.safetensors"}})");
  const auto opened = ReadModelFolder(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const TensorBytes read = opened->Read("a");
  EXPECT_EQ(read.view.format, WeightFormat::kMXFP4);
  EXPECT_THAT(read.view.shape, testing::ElementsAre(1, 64));
  float elements[64];
  LoadElements(read.view, 0, 64, elements);
  constexpr float kFourBitNumbers[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (int i = 0; i < 64; ++i) {
    const float number = kFourBitNumbers[i % 8] * (i / 8 % 2 == 0 ? 1.0F : -1.0F);
    EXPECT_EQ(elements[i], i < 32 ? number : 4 * number) << i;
  }

  folder.Write(kIndex, R"({"weight_map":{"a_blocks":"one.safetensors"}})");
  EXPECT_THAT(FolderError(folder),
              AllOf(HasSubstr("'a_blocks' has dtype U8"), HasSubstr("there is no 'a_scales'")));
  folder.Write("two.safetensors",
               FrameSafetensors(R"({"a_scales":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                                "\x7f\x81"));
  folder.Write(kIndex,
               R"({"weight_map":{"a_blocks":"one.safetensors","a_scales":"two.safetensors"}})");
  EXPECT_THAT(FolderError(folder), HasSubstr("not 16 for each of 'a_scales'"));
  folder.Write(kIndex, R"({"weight_map":{"a":"three.safetensors"}})");
  folder.Write("three.safetensors",
               FrameSafetensors(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"));
  EXPECT_THAT(FolderError(folder), HasSubstr("only blocks of MXFP4"));
}

TEST(ModelFolderTest, RefusesAHostileIndex) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  for (const char* shard : {R"("../a.safetensors")", R"("/etc/passwd")", R"("..")", R"("")", "3",
                            R"("a\u0000b")", R"("a\\b")"}) {
    folder.Write(kIndex, std::string(R"({"weight_map":{"a":)") + shard + "}}");
    EXPECT_THAT(FolderError(folder), HasSubstr("not a plain file name")) << shard;
  }
  for (const char* index : {"", "[]", "{}", R"({"weight_map":[]})"}) {
    folder.Write(kIndex, index);
    EXPECT_THAT(FolderError(folder), AllOf(HasSubstr(kIndex), HasSubstr("weight_map"))) << index;
  }
}

TEST(ModelFolderTest, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(Checkpoint::Open(folder.path() / "absent").error().message,
              HasSubstr("no such model folder or GGUF file"));
  EXPECT_THAT(FolderError(folder), AllOf(HasSubstr("config.json"), HasSubstr("missing")));
  folder.Write("config.json", "{}");
  EXPECT_THAT(FolderError(folder), HasSubstr("has neither model.safetensors nor"));
  folder.Write("config.json", std::string((16 << 20) + 1, ' '));
  EXPECT_THAT(FolderError(folder), HasSubstr("larger than 16 MiB"));
}

TEST(ModelFolderTest, RefusesATruncatedFile) {
  const TemporaryFolder folder;
  folder.Write("config.json", "{}");
  const std::string whole = OneTensor("a", 1);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    folder.Write("model.safetensors", whole.substr(0, bytes));
    EXPECT_THAT(FolderError(folder), HasSubstr("model.safetensors")) << bytes;
  }
  folder.Write("model.safetensors", whole);
  EXPECT_EQ(FolderError(folder), "no error");
}

}  // namespace
}  // namespace foretoken
