#include "core/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/temporary_testing.h"
#include "core/weights/weights_testing.h"

namespace foretoken {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<FileTensors> ParseSafetensorsText(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "a.safetensors");
}

std::string SafetensorsError(const std::string& file) {
  const auto holds = ParseSafetensorsText(file);
  return holds.ok() ? "no error" : holds.error().message;
}

// The error of a header with one tensor `a` over 16 bytes of data.
std::string ErrorOfTensor(const std::string& tensor) {
  return SafetensorsError(FrameSafetensors("{\"a\":" + tensor + "}", std::string(16, '\0')));
}

std::vector<float> ElementsOf(const TensorView& view) {
  std::vector<float> values(view.elements());
  LoadElements(view, 0, view.elements(), values.data());
  return values;
}

TEST(SafetensorsTest, ReadsEveryTypeAlignedOrNot) {
  SafetensorsBuilder builder;
  builder.Add("f32", WeightFormat::kF32, {2, 2}, {1, -2.5, 3e30F, 0.1F});
  builder.Add("f16", WeightFormat::kF16, {3}, {1, -0.5, 1024});
  builder.Add("bf16", WeightFormat::kBF16, {1, 2}, {-4, 0.375});
  builder.Add("scalar", WeightFormat::kF32, {}, {7});
  builder.Add("empty", WeightFormat::kF32, {0, 5}, {});
  for (const bool unaligned : {false, true}) {
    const std::string file = builder.Build(unaligned);
    const auto holds = ParseSafetensorsText(file);
    ASSERT_TRUE(holds.ok()) << holds.error().message;
    const TensorMap* tensors = &holds->tensors;
    EXPECT_EQ(tensors->size(), 5U);
    EXPECT_THAT(ElementsOf(tensors->at("f32")), ElementsAre(1, -2.5, 3e30F, 0.1F));
    EXPECT_THAT(ElementsOf(tensors->at("f16")), ElementsAre(1, -0.5, 1024));
    EXPECT_THAT(ElementsOf(tensors->at("bf16")), ElementsAre(-4, 0.375));
    EXPECT_THAT(ElementsOf(tensors->at("scalar")), ElementsAre(7));
    EXPECT_EQ(tensors->at("empty").elements(), 0);
    EXPECT_THAT(tensors->at("f32").shape, ElementsAre(2, 2));
  }
}

TEST(SafetensorsTest, ReadsBytes) {
  const auto holds = ParseSafetensorsText(
      FrameSafetensors(R"({"a":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}})", "abcdef"));
  ASSERT_TRUE(holds.ok()) << holds.error().message;
  EXPECT_TRUE(holds->tensors.empty());
  const ByteTensor& bytes = holds->bytes.at("a");
  EXPECT_THAT(bytes.shape, ElementsAre(2, 3));
  ASSERT_EQ(bytes.data.size(), 6U);
  EXPECT_EQ(bytes.data[5], std::byte{'f'});
  EXPECT_THAT(ErrorOfTensor(R"({"dtype":"U8","shape":[4],"data_offsets":[0,16]})"),
              HasSubstr("takes 4 bytes by shape and dtype but 16 by data_offsets"));
}

TEST(SafetensorsTest, KnowsOtherTensors) {
  const auto holds = ParseSafetensorsText(
      FrameSafetensors(R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", "abcdefgh"));
  ASSERT_TRUE(holds.ok()) << holds.error().message;
  EXPECT_EQ(holds->others.at("a").dtype, "I64");
  EXPECT_EQ(holds->others.at("a").data.size(), 8U);
}

TEST(SafetensorsTest, RefusesABadFrame) {
  EXPECT_THAT(SafetensorsError("1234567"), AllOf(HasSubstr("a.safetensors"), HasSubstr("too few")));
  EXPECT_THAT(SafetensorsError(std::string(8, '\xFF') + "{}"), HasSubstr("header of"));
  EXPECT_THAT(SafetensorsError(std::string("\x09\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("header of 9 bytes"));
  // Spaces may fill the header up, but nothing else.
  EXPECT_TRUE(ParseSafetensorsText(FrameSafetensors("{}  ", "")).ok());
  EXPECT_THAT(SafetensorsError(FrameSafetensors(std::string("{}\0\0", 4), "")),
              HasSubstr("is not a JSON object"));
  EXPECT_THAT(SafetensorsError(FrameSafetensors("[]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(SafetensorsError(FrameSafetensors("{\"a\":", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(SafetensorsError(FrameSafetensors(std::string(100'000'001, ' '), "")),
              HasSubstr("header of 100000001 bytes"));
  EXPECT_EQ(SafetensorsError(FrameSafetensors("{}", "")), "no error");
}

TEST(SafetensorsTest, RefusesABadTensor) {
  EXPECT_THAT(ErrorOfTensor("3"), HasSubstr("tensor 'a' must have a dtype"));
  EXPECT_THAT(ErrorOfTensor(R"({"dtype":"C64","shape":[2],"data_offsets":[0,16]})"),
              AllOf(HasSubstr("tensor 'a'"), HasSubstr("unknown dtype C64")));
  EXPECT_THAT(ErrorOfTensor(R"({"dtype":"I64","shape":[3],"data_offsets":[0,16]})"),
              HasSubstr("takes 24 bytes by shape and dtype but 16 by data_offsets"));
  for (const char* shape : {"[-4]", "[4.0]", "4", "[4294967296,4294967296,0]",
                            "[18446744073709551615]", "[1,1,1,1,1,1,1,1,4]"}) {
    EXPECT_THAT(ErrorOfTensor(std::string(R"({"dtype":"F32","data_offsets":[0,16],"shape":)") +
                              shape + "}"),
                HasSubstr("impossible shape"))
        << shape;
  }
  for (const char* offsets :
       {"[8,4]", "[4,20]", "[-4,12]", "[0]", "16", "[0,18446744073709551615]"}) {
    EXPECT_THAT(
        ErrorOfTensor(std::string(R"({"dtype":"F32","shape":[4],"data_offsets":)") + offsets + "}"),
        HasSubstr("outside the 16 bytes of data"))
        << offsets;
  }
  EXPECT_THAT(ErrorOfTensor(R"({"dtype":"F32","shape":[4],"data_offsets":[0,12]})"),
              HasSubstr("takes 16 bytes by shape and dtype but 12 by data_offsets"));
}

TEST(SafetensorsTest, RefusesOverlap) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_THAT(SafetensorsError(FrameSafetensors(header, std::string(12, '\0'))),
              HasSubstr("'b' and 'a' overlap"));
}

TEST(SafetensorsTest, OpensOnlyRegularFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT(TensorFile::Open(folder.path() / "absent", ParseSafetensors).error().message,
              HasSubstr("cannot be opened"));
  EXPECT_THAT(TensorFile::Open(folder.path(), ParseSafetensors).error().message,
              HasSubstr("not a regular file"));
  folder.Write("empty", "");
  EXPECT_THAT(TensorFile::Open(folder.path() / "empty", ParseSafetensors).error().message,
              HasSubstr("too few"));
}

}  // namespace
}  // namespace foretoken
