#include "core/weights/gguf/gguf_header.h"

#include <gmock/gmock.h>

#include <array>

#include "core/weights/gguf/gguf_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;

const std::array<std::string, 3> kTexts = {"one", "", "three"};
constexpr std::array<float, 2> kScores = {-1, 0.25F};
constexpr std::array<std::int32_t, 3> kTypes = {1, -2, 3};

GgufHeader TwoTensorHeader() {
  GgufHeader header;
  header.Set("general.architecture", "gpt2");
  header.Set("general.architecture", "llama");
  header.Set("a.number", std::uint32_t{7});
  header.Set("a.fraction", 0.5F);
  header.Set("a.flag", true);
  header.Set("texts", std::span<const std::string>(kTexts));
  header.Set("scores", std::span<const float>(kScores));
  header.Set("types", std::span<const std::int32_t>(kTypes));
  header.SetFlags("flags", {true, false, true});
  header.Set("a.mistake", 1.0F);
  header.Erase("a.mistake");
  header.Erase("a.mistake");
  header.AddTensor("first", std::vector<std::int64_t>{3}, WeightFormat::kF32);
  header.AddTensor("second", std::vector<std::int64_t>{2, 32}, WeightFormat::kQ8_0);
  return header;
}

std::string File(const GgufHeader& header) {
  std::string file = header.Bytes();
  for (const std::string& tensor : {std::string(12, '\1'), std::string(68, '\2')}) {
    file += tensor + header.Padding(tensor.size());
  }
  return file;
}

TEST(GgufHeader, IsReadBack) {
  const std::string file = File(TwoTensorHeader());
  const auto contents = ParseGgufText(file);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  const GgufMetadata& metadata = contents->metadata;
  std::string text;
  double fraction = 0;
  bool flag = false;
  std::int64_t number = 0;
  ASSERT_TRUE(metadata.String("general.architecture", &text).ok());
  ASSERT_TRUE(metadata.Number("a.fraction", &fraction).ok());
  ASSERT_TRUE(metadata.Flag("a.flag", &flag).ok());
  ASSERT_TRUE(metadata.Integer("a.number", 0, 10, &number).ok());
  EXPECT_EQ(text, "llama");
  EXPECT_EQ(fraction, 0.5);
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, 7);
  std::optional<GgufArray> array;
  ASSERT_TRUE(metadata.Array("texts", &array).ok());
  EXPECT_THAT(array->Strings(), ElementsAre("one", "", "three"));
  ASSERT_TRUE(metadata.Array("types", &array).ok());
  EXPECT_THAT(array->Numbers(), ElementsAre(1, -2, 3));
  ASSERT_TRUE(metadata.Array("flags", &array).ok());
  EXPECT_EQ(array->type, GgufType::kBool);
  EXPECT_THAT(array->Numbers(), ElementsAre(1, 0, 1));
  EXPECT_EQ(metadata.Find("a.mistake"), nullptr);
  const TensorView& second = contents->tensors.at("second");
  EXPECT_THAT(second.shape, ElementsAre(2, 32));
  EXPECT_EQ(second.format, WeightFormat::kQ8_0);
  EXPECT_EQ(second.data[67], std::byte{2});
  EXPECT_EQ(contents->tensors.at("first").data[0], std::byte{1});
}

TEST(GgufHeader, KeysOfAnotherFileAreCopied) {
  GgufHeader original = TwoTensorHeader();
  original.Set("general.alignment", std::uint32_t{256});
  const std::string file = File(original);
  const auto contents = ParseGgufText(file);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  GgufHeader copy;
  for (const auto& [key, value] : contents->metadata.encoded()) copy.Set(key, value);
  copy.AddTensor("first", std::vector<std::int64_t>{3}, WeightFormat::kF32);
  copy.AddTensor("second", std::vector<std::int64_t>{2, 32}, WeightFormat::kQ8_0);
  EXPECT_EQ(File(copy), file);
  EXPECT_EQ(copy.Padding(12).size(), 244U);
}

}  // namespace
}  // namespace foretoken
