#include "core/weights/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "base/files/temporary_testing.h"
#include "core/weights/gguf/gguf_testing.h"

namespace foretoken {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kGgufF32 = 0;
constexpr std::uint32_t kGgufQ8_0 = 8;

std::string FloatBytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string Refusal(const std::string& file) {
  const auto contents = ParseGgufText(file);
  return contents.ok() ? "accepted" : contents.error().message;
}
std::string Refusal(const GgufBuilder& builder) { return Refusal(builder.File()); }

GgufBuilder TwoTensorFile() {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama");
  builder.Key("llama.block_count", GgufType::kUint32, std::uint32_t{2});
  builder.Key("llama.rope.freq_base", GgufType::kFloat32, 10000.0F);
  builder.Key("some.flag", GgufType::kBool, std::uint8_t{1});
  builder.Strings("tokenizer.ggml.tokens", {"<s>", "", "a b"});
  builder.Tensor("a", {3, 2}, kGgufF32, FloatBytes({1, 2, 3, 4, 5, 6}));
  builder.Tensor("b", {64}, kGgufQ8_0, std::string(68, '\1'));
  return builder;
}

TEST(Gguf, ReadsKeysAndTensors) {
  for (const std::uint32_t version : {2, 3}) {
    GgufBuilder builder = TwoTensorFile();
    builder.version = version;
    const std::string file = builder.File();
    const auto contents = ParseGgufText(file);
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    const GgufMetadata& metadata = contents->metadata;
    std::int64_t blocks = 0;
    double base = 0;
    bool flag = false;
    std::string architecture;
    std::optional<GgufArray> tokens;
    EXPECT_TRUE(metadata.Integer("llama.block_count", 1, 9, &blocks).ok());
    EXPECT_TRUE(metadata.Number("llama.rope.freq_base", &base).ok());
    EXPECT_TRUE(metadata.Flag("some.flag", &flag).ok());
    EXPECT_TRUE(metadata.String("general.architecture", &architecture).ok());
    EXPECT_TRUE(metadata.Array("tokenizer.ggml.tokens", &tokens).ok());
    EXPECT_EQ(blocks, 2);
    EXPECT_EQ(base, 10000);
    EXPECT_TRUE(flag);
    EXPECT_EQ(architecture, "llama");
    EXPECT_THAT(tokens->Strings(), ElementsAre("<s>", "", "a b"));
    const TensorView& a = contents->tensors.find("a")->second;
    EXPECT_EQ(a.format, WeightFormat::kF32);
    EXPECT_THAT(a.shape, ElementsAre(2, 3));
    std::vector<float> values(6);
    LoadElements(a, 0, 6, values.data());
    EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_EQ(contents->tensors.find("b")->second.bytes(), 68U);
  }
}

TEST(Gguf, TensorsThatNoWeightHasLieApart) {
  constexpr std::uint32_t kI64 = 27;
  GgufBuilder builder = TwoTensorFile();
  builder.Tensor("tokens", {3}, kI64, std::string(24, '\1'));
  const std::string file = builder.File();
  const auto contents = ParseGgufText(file);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_EQ(contents->tensors.size(), 2U);
  ASSERT_EQ(contents->others.size(), 1U);
  EXPECT_EQ(contents->others.at("tokens").dtype, "I64");
  EXPECT_EQ(contents->others.at("tokens").data.size(), 24U);
  EXPECT_THAT(Refusal(file.substr(0, file.size() - 1)), HasSubstr("the file is truncated"));
  builder.Tensor("a", {1}, kI64, std::string(8, '\1'));
  EXPECT_THAT(Refusal(builder), HasSubstr("has tensor 'a' twice"));
}

TEST(Gguf, KeysOfAnotherKindAreRefusedWhenTheyAreRead) {
  const std::string file = TwoTensorFile().File();
  const GgufMetadata metadata = ParseGgufText(file)->metadata;
  std::int64_t number = 7;
  std::string text;
  EXPECT_TRUE(metadata.Integer("absent", 0, 1, &number).ok());
  EXPECT_EQ(number, 7);
  EXPECT_THAT(metadata.Integer("llama.block_count", 3, 9, &number).error().message,
              AllOf(HasSubstr("llama.block_count"), HasSubstr("from 3 to 9")));
  EXPECT_FALSE(metadata.Integer("some.flag", 0, 9, &number).ok());
  EXPECT_FALSE(metadata.String("llama.block_count", &text).ok());
}

TEST(Gguf, NumbersOfEveryTypeAreRead) {
  GgufBuilder builder;
  std::string bytes;
  GgufBuilder::Append(&bytes, static_cast<std::uint32_t>(GgufType::kInt16));
  GgufBuilder::Append(&bytes, std::uint64_t{2});
  GgufBuilder::Append(&bytes, std::int16_t{-3});
  GgufBuilder::Append(&bytes, std::int16_t{400});
  builder.Key("shorts", GgufType::kArray, std::string_view(bytes));
  builder.Key("long", GgufType::kInt64, std::int64_t{-5});
  builder.Key("double", GgufType::kFloat64, 0.25);
  const std::string file = builder.File();
  const GgufMetadata metadata = ParseGgufText(file)->metadata;
  std::optional<GgufArray> shorts;
  ASSERT_TRUE(metadata.Array("shorts", &shorts).ok());
  EXPECT_THAT(shorts->Numbers(), ElementsAre(-3, 400));
  std::int64_t number = 0;
  double fraction = 0;
  EXPECT_TRUE(metadata.Integer("long", -9, 0, &number).ok());
  EXPECT_TRUE(metadata.Number("double", &fraction).ok());
  EXPECT_EQ(number, -5);
  EXPECT_EQ(fraction, 0.25);
}

TEST(Gguf, NoBeginningOfAFileIsAccepted) {
  const std::string file = TwoTensorFile().File();
  for (std::size_t size = 0; size < file.size(); ++size) {
    ASSERT_NE(Refusal(file.substr(0, size)), "accepted") << size;
  }
}

TEST(Gguf, DefectsAreNamed) {
  EXPECT_THAT(Refusal("GGML and more"), HasSubstr("is not a GGUF file"));
  GgufBuilder old = TwoTensorFile();
  old.version = 1;
  EXPECT_THAT(Refusal(old), HasSubstr("version 1 of GGUF; 2 and 3"));
  old.version = 0x03000000;
  EXPECT_THAT(Refusal(old), HasSubstr("big-endian"));

  GgufBuilder twice = TwoTensorFile();
  twice.Text("general.architecture", "llama");
  EXPECT_THAT(Refusal(twice), HasSubstr("the key general.architecture twice"));

  GgufBuilder type;
  type.Key("k", static_cast<GgufType>(13), std::uint64_t{0});
  EXPECT_THAT(Refusal(type), HasSubstr("the value of k has the unknown type 13"));

  GgufBuilder nested;
  std::string array;
  GgufBuilder::Append(&array, static_cast<std::uint32_t>(GgufType::kArray));
  GgufBuilder::Append(&array, std::uint64_t{1});
  nested.Key("k", GgufType::kArray, std::string_view(array));
  EXPECT_THAT(Refusal(nested), HasSubstr("an array of arrays"));

  GgufBuilder aligned;
  aligned.Key("general.alignment", GgufType::kUint32, std::uint32_t{48});
  EXPECT_THAT(Refusal(aligned), HasSubstr("general.alignment must be a power of two"));
}

TEST(Gguf, CountsAreHeldAgainstTheFile) {
  // More keys, elements and bytes than there are, which must neither be believed nor allocated.
  std::string file = "GGUF";
  GgufBuilder::Append(&file, std::uint32_t{3});
  GgufBuilder::Append(&file, ~std::uint64_t{0});
  GgufBuilder::Append(&file, ~std::uint64_t{0});
  EXPECT_THAT(Refusal(file), HasSubstr("truncated"));
  for (const GgufType elements : {GgufType::kUint64, GgufType::kString}) {
    GgufBuilder array;
    std::string bytes;
    GgufBuilder::Append(&bytes, static_cast<std::uint32_t>(elements));
    GgufBuilder::Append(&bytes, std::uint64_t{1} << 61);
    array.Key("k", GgufType::kArray, std::string_view(bytes));
    EXPECT_THAT(Refusal(array), HasSubstr("the value of k; the file is truncated"));
  }
}

TEST(Gguf, TensorsMustBeWhatTheyCanBe) {
  const auto refusal = [](const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                          std::uint64_t offset) {
    GgufBuilder builder;
    builder.Tensor("a", {32}, kGgufF32, std::string(128, '\0'));
    builder.Info("t", sizes, type, offset);
    return Refusal(builder);
  };
  EXPECT_EQ(refusal({0}, kGgufF32, 0), "m.gguf: tensor 't' has the impossible dimension 0");
  EXPECT_THAT(refusal({}, kGgufF32, 0), HasSubstr("has 0 dimensions; tensors have from 1 to 4"));
  EXPECT_THAT(refusal({1, 1, 1, 1, 1}, kGgufF32, 0), HasSubstr("has 5 dimensions"));
  EXPECT_THAT(refusal({1ULL << 40, 1ULL << 40}, kGgufF32, 0),
              HasSubstr("the impossible dimension"));
  EXPECT_THAT(refusal({33}, kGgufQ8_0, 0),
              HasSubstr("rows of 33 elements, which are no whole Q8_0"));
  EXPECT_THAT(refusal({32}, 19, 0),
              AllOf(HasSubstr("tensor 't' is stored as IQ1_S, which is not"), HasSubstr("Q4_K")));
  EXPECT_THAT(refusal({32}, 99, 0), HasSubstr("the unknown type 99"));
  EXPECT_THAT(refusal({8}, kGgufF32, 4), HasSubstr("begins at 4, which is not aligned to 32"));
  EXPECT_THAT(refusal({8}, kGgufF32, 128), HasSubstr("32 bytes from 128 on, but there are 128"));
  EXPECT_THAT(refusal({8}, kGgufF32, ~std::uint64_t{31}), HasSubstr("the file is truncated"));
  EXPECT_THAT(refusal({8}, kGgufF32, 96), HasSubstr("tensors 'a' and 't' overlap"));
}

class SplitFile : public ::testing::Test {
 protected:
  std::string Part(int number) const {
    return (folder_.path() / ("m-0000" + std::to_string(number) + "-of-00002.gguf")).string();
  }
  void Write(int number, const std::string& tensor, std::uint16_t says, std::int32_t together = 2) {
    GgufBuilder builder;
    builder.Key("split.no", GgufType::kUint16, says);
    builder.Key("split.count", GgufType::kUint16, std::uint16_t{2});
    builder.Key("split.tensors.count", GgufType::kInt32, together);
    builder.Tensor(tensor, {1}, kGgufF32, FloatBytes({static_cast<float>(number)}));
    builder.Write(Part(number));
  }
  std::string Opened(const std::string& path) {
    const auto file = GgufFile::Open(path);
    return file.ok() ? "opened" : file.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(SplitFile, AllPartsAreOpened) {
  Write(1, "a", 0);
  Write(2, "b", 1);
  const auto file = GgufFile::Open(Part(1));
  ASSERT_TRUE(file.ok()) << file.error().message;
  float value = 0;
  LoadElements(file->tensors().find("b")->second, 0, 1, &value);
  EXPECT_EQ(value, 2);
}

TEST_F(SplitFile, DefectsAreNamed) {
  Write(1, "a", 0);
  EXPECT_THAT(Opened(Part(1)), HasSubstr("m-00002-of-00002.gguf"));
  Write(2, "b", 1);
  EXPECT_THAT(Opened(Part(2)), HasSubstr("is part 2 of 2; name the first part"));
  Write(2, "b", 0);
  EXPECT_THAT(Opened(Part(1)), HasSubstr("says that it is part 1 of 2"));
  Write(2, "a", 1);
  EXPECT_THAT(Opened(Part(1)), HasSubstr("has tensor 'a', which another part has too"));
  Write(1, "a", 0, 3);
  Write(2, "b", 1);
  EXPECT_THAT(Opened(Part(1)), HasSubstr("the 2 parts have 2 tensors together"));
  std::filesystem::rename(Part(1), folder_.path() / "renamed.gguf");
  EXPECT_THAT(Opened((folder_.path() / "renamed.gguf").string()), HasSubstr("is not named"));
}

}  // namespace
}  // namespace foretoken
