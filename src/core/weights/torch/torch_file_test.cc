#include "core/weights/torch/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/numbers/integers.h"
#include "core/weights/safetensors.h"
#include "core/weights/torch/torch_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Result<FileTensors> ParseTorchText(const std::string& file) {
  return ParseTorchFile(std::as_bytes(std::span(file)), "a.bin");
}
std::string TorchError(const std::string& file) {
  const auto holds = ParseTorchText(file);
  return holds.ok() ? "no error" : holds.error().message;
}

// Four floats in the storage '0'.
std::string FileOf(const std::string& pickle, const std::string& data = std::string(16, 'x')) {
  ZipBuilder zip;
  zip.Add("archive/data.pkl", pickle);
  zip.Add("archive/data/0", data);
  return zip.Build();
}
std::string TensorFileOf(std::int64_t elements, std::int64_t offset,
                         const std::vector<std::int64_t>& shape,
                         const std::vector<std::int64_t>& strides) {
  return FileOf(Pickled::Dictionary(
      Pickled::Text("a") + Pickled::Tensor("FloatStorage", "0", elements, offset, shape, strides)));
}

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ExpectSame(const FileTensors& read, const FileTensors& expected) {
  ASSERT_EQ(read.tensors.size(), expected.tensors.size());
  for (const auto& [name, view] : expected.tensors) {
    SCOPED_TRACE(name);
    const auto found = read.tensors.find(name);
    ASSERT_NE(found, read.tensors.end());
    EXPECT_EQ(found->second.format, view.format);
    EXPECT_EQ(found->second.shape, view.shape);
    EXPECT_EQ(Text({found->second.data, found->second.bytes()}), Text({view.data, view.bytes()}));
  }
  ASSERT_EQ(read.others.size(), expected.others.size());
  for (const auto& [name, other] : expected.others) {
    SCOPED_TRACE(name);
    const auto found = read.others.find(name);
    ASSERT_NE(found, read.others.end());
    EXPECT_EQ(found->second.dtype, other.dtype);
    EXPECT_EQ(Text(found->second.data), Text(other.data));
  }
  ASSERT_EQ(read.bytes.size(), expected.bytes.size());
  for (const auto& [name, bytes] : expected.bytes) {
    SCOPED_TRACE(name);
    const auto found = read.bytes.find(name);
    ASSERT_NE(found, read.bytes.end());
    EXPECT_EQ(found->second.shape, bytes.shape);
    EXPECT_EQ(Text(found->second.data), Text(bytes.data));
  }
}

// What torch has written (tests/golden/make_torch_files.py), beside the same in safetensors files.
TEST(TorchFileTest, ReadsWhatTorchWrites) {
  const fs::path goldens = fs::path(FORETOKEN_SOURCE_DIR) / "tests/golden";
  for (const auto& [name, same] :
       {std::pair("dtypes", "torch/dtypes"), std::pair("module", "torch/module"),
        std::pair("protocol4", "torch/module"), std::pair("eagle1", "drafters/eagle1/model")}) {
    SCOPED_TRACE(name);
    const auto file =
        TensorFile::Open(goldens / "torch" / (std::string(name) + ".bin"), ParseTorchFile);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto expected =
        TensorFile::Open(goldens / (std::string(same) + ".safetensors"), ParseSafetensors);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    ExpectSame(file->holds, expected->holds);
  }
}

TEST(TorchFileTest, RefusesWhatElseTorchWrites) {
  const fs::path folder = fs::path(FORETOKEN_SOURCE_DIR) / "tests/golden/torch";
  const auto error = [&](const char* name) {
    const auto file = TensorFile::Open(folder / name, ParseTorchFile);
    return file.ok() ? "no error" : file.error().message;
  };
  EXPECT_THAT(error("transposed.bin"),
              HasSubstr("tensor 'a' of shape [3, 2] lies in memory by strides [1, 3]"));
  EXPECT_THAT(error("legacy.bin"), HasSubstr("before version 1.6; write it again: torch.save("));
  EXPECT_THAT(
      error("whole_module.bin"),
      HasSubstr("its pickle names torch.nn.modules.linear.Linear, which is not run, but only "
                "a dictionary of tensors is read"));
  EXPECT_THAT(error("nested.bin"), HasSubstr("'model' is a dictionary, but only"));
  EXPECT_THAT(error("one_tensor.bin"), HasSubstr("it is a tensor, but only"));
  EXPECT_THAT(error("float8.bin"), HasSubstr("names torch._utils._rebuild_tensor_v3"));
}

TEST(TorchFileTest, RunsNothing) {
  const std::string system = Pickled::Global("os", "system") + "(" + Pickled::Text("true") + "tR";
  EXPECT_THAT(TorchError(FileOf(Pickled::Dictionary(Pickled::Text("a") + system))),
              HasSubstr("a.bin: its pickle names os.system, which is not run"));
  EXPECT_THAT(TorchError(FileOf("\x80\x02ios\nsystem\n.")),
              HasSubstr("has the instruction 0x69 at byte 2"));
  EXPECT_THAT(TorchError(FileOf("\x80\x01}.")), HasSubstr("is pickled by protocol 1"));
}

// Storages of any size and dtype, of which each tensor is a part.
TEST(TorchFileTest, ReadsAnyPartsOfStorages) {
  constexpr std::pair<const char*, const char*> kStorageTypes[] = {
      {"FloatStorage", "F32"}, {"HalfStorage", "F16"},  {"BFloat16Storage", "BF16"},
      {"LongStorage", "I64"},  {"BoolStorage", "BOOL"}, {"ByteStorage", "U8"}};
  std::mt19937 random(1);
  const auto below = [&](std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 200; ++round) {
    ZipBuilder zip;
    zip.large = below(2) == 0;
    FileTensors expected;
    std::vector<std::string> datas(below(4));
    std::string items;
    for (std::size_t i = 0; i < datas.size(); ++i) {
      const auto& [type, dtype] = kStorageTypes[below(std::ssize(kStorageTypes))];
      const std::int64_t bytes = DTypeBytes(dtype);
      const std::int64_t elements = below(40);
      for (std::int64_t b = 0; b < bytes * elements; ++b) {
        datas[i] += static_cast<char>(below(256));
      }
      for (std::int64_t t = below(4); t > 0; --t) {
        const std::int64_t rows = below(4);
        const std::int64_t columns = below(rows == 0 ? 9 : elements / rows + 1);
        const std::int64_t offset = below(elements - rows * columns + 1);
        const std::string name = "storage" + std::to_string(i) + "." + std::to_string(t);
        // The strides of one row, or one column, or nothing mean nothing.
        const std::int64_t of_rows = rows < 2 || columns == 0 ? below(9) : columns;
        const std::int64_t of_columns = columns < 2 || rows == 0 ? below(9) : 1;
        items += Pickled::Text(name) + Pickled::Tensor(type, std::to_string(i), elements, offset,
                                                       {rows, columns}, {of_rows, of_columns});
        expected.Add(name, dtype, {rows, columns},
                     std::as_bytes(std::span(datas[i]))
                         .subspan(Size(offset * bytes), Size(rows * columns * bytes)));
      }
    }
    zip.Add("x/byteorder", "little");
    for (std::size_t i = 0; i < datas.size(); ++i) {
      zip.Add("x/data/" + std::to_string(i), datas[i], static_cast<std::uint16_t>(below(70)));
    }
    zip.Add("x/data.pkl", Pickled::Dictionary(items));
    const std::string file = zip.Build(std::string(below(30), 'c'));
    const auto holds = ParseTorchText(file);
    ASSERT_TRUE(holds.ok()) << holds.error().message;
    ExpectSame(*holds, expected);
    // Whatever is cut off is missed.
    EXPECT_FALSE(ParseTorchText(file.substr(0, below(std::ssize(file)))).ok());
  }
}

TEST(TorchFileTest, RefusesTensorsThatDoNotFitTheirStorage) {
  EXPECT_EQ(TorchError(TensorFileOf(4, 0, {2, 2}, {2, 1})), "no error");
  EXPECT_EQ(TorchError(TensorFileOf(4, 2, {2}, {1})), "no error");
  EXPECT_THAT(TorchError(TensorFileOf(4, 3, {2}, {1})),
              HasSubstr("a.bin: tensor 'a' has 2 elements from element 3 on of a storage of 4"));
  EXPECT_THAT(TorchError(TensorFileOf(4, INT64_MAX, {2}, {1})), HasSubstr("of a storage of 4"));
  EXPECT_THAT(TorchError(TensorFileOf(5, 0, {2}, {1})),
              HasSubstr("is of a storage of 5 elements of 4 bytes, but '0' has 16 bytes"));
  EXPECT_THAT(TorchError(TensorFileOf(4, 0, {INT64_MAX, INT64_MAX}, {1, 1})),
              HasSubstr("has the impossible shape"));
  EXPECT_THAT(TorchError(TensorFileOf(4, 0, {4}, {0})), HasSubstr("by strides [0]"));
  EXPECT_THAT(TorchError(TensorFileOf(4, 0, {2}, {1, 1})), HasSubstr("damaged"));
  EXPECT_THAT(TorchError(TensorFileOf(4, 0, {-2}, {1})), HasSubstr("damaged"));
  EXPECT_THAT(TorchError(FileOf(Pickled::Dictionary(
                  Pickled::Text("a") + Pickled::Tensor("FloatStorage", "1", 4, 0, {4}, {1})))),
              HasSubstr("is of the storage '1', which the file lacks"));
  const std::string tensor =
      Pickled::Text("a") + Pickled::Tensor("FloatStorage", "0", 4, 0, {4}, {1});
  EXPECT_THAT(TorchError(FileOf(Pickled::Dictionary(tensor + tensor))),
              HasSubstr("tensor 'a' is there twice"));
}

TEST(TorchFileTest, RefusesOtherFiles) {
  EXPECT_THAT(TorchError(""), HasSubstr("a.bin: is no zip file, which torch.save writes"));
  EXPECT_THAT(TorchError(std::string(100, 'x')), HasSubstr("is no zip file"));
  ZipBuilder zip;
  zip.Add("archive/data", "x");
  EXPECT_THAT(TorchError(zip.Build()), HasSubstr("is a zip file with 0 members */data.pkl"));
  zip.Add("archive/data.pkl", Pickled::Dictionary(""));
  EXPECT_EQ(TorchError(zip.Build()), "no error");
  zip.Add("archive/byteorder", "big");
  EXPECT_THAT(TorchError(zip.Build()), HasSubstr("has byteorder 'big'"));
  zip.Add("archive/data", "x");
  EXPECT_THAT(TorchError(zip.Build()), HasSubstr("has member 'archive/data' twice"));
  ZipBuilder compressed;
  compressed.method = 8;
  compressed.Add("archive/data.pkl", "x");
  EXPECT_THAT(TorchError(compressed.Build()),
              HasSubstr("member 'archive/data.pkl' is compressed or encrypted"));
  ZipBuilder encrypted;
  encrypted.flags = 1;
  encrypted.Add("archive/data.pkl", "x");
  EXPECT_THAT(TorchError(encrypted.Build()), HasSubstr("is compressed or encrypted"));
}

// Stacks that end, marks and places that are not there, dictionaries that contain themselves.
TEST(TorchFileTest, RefusesStrangePickles) {
  for (const char* pickle :
       {"",     "\x80\x02", "\x80\x02.", "}",      "\x80\x02}", "u.",    "}u.",  "(u.",  "}(NNNu.",
        "s.",   "}Nu.",     "h\x05.",    "q\x05.", "t.",        "\x85.", "R.",   "))R.", "b.",
        "}Nb.", "Q.",       ")Q.",       "X\xff",  "}(NNu",     "\x93.", "\x94."}) {
    EXPECT_THAT(TorchError(FileOf(pickle)), HasSubstr("the pickle is damaged at byte")) << pickle;
  }
  EXPECT_THAT(TorchError(FileOf("}q\x01(NNu.")), HasSubstr("a key is None"));
  EXPECT_THAT(TorchError(FileOf("}q\x01(X\x01" + std::string(3, '\0') + "ah\x01u.")),
              HasSubstr("'a' is a dictionary"));
  EXPECT_THAT(TorchError(FileOf(")" + std::string(10000, '\x85') + ".")),
              HasSubstr("it is a tuple"));
}

// An instruction takes a byte, and what it makes a hundred.
TEST(TorchFileTest, RefusesPicklesThatWouldFillTheMemory) {
  constexpr std::size_t kBytes = 15 << 20;
  std::string places;
  for (std::uint32_t i = 0; i < kBytes / 5; ++i) {
    places += 'r';
    places.append(reinterpret_cast<const char*>(&i), sizeof(i));
  }
  for (const std::string& pickle :
       {std::string(kBytes, '}'), std::string(kBytes, '('), "N" + std::string(kBytes, '\x94'),
        "N" + places, ")" + std::string(kBytes, '\x85')}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(TorchError(FileOf(pickle)), HasSubstr("has a pickle of more than"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
}

}  // namespace
}  // namespace foretoken
