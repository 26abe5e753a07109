#include "core/weights/gguf/gguf_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "base/numbers/integers.h"
#include "base/text/printable.h"
#include "core/weights/file_tensors.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kMostGgufDimensions = 4;
constexpr std::int64_t kMostParts = 99'999;

// Tensor types by their numbers; names that are no WeightFormat are not supported.
constexpr std::array<std::string_view, 42> kTensorTypes = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0"};

// Where a tensor's data lie in the data section, which is what overlaps are told by.
struct GgufExtent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string_view name;
};

struct Layout {
  std::uint64_t alignment = kUsualGgufAlignment;
  std::span<const std::byte> data;  // Behind the infos and what aligns them.
};

// What a file says of a tensor, before it is known where the data begin.
struct TensorInfo {
  std::string_view name;
  TensorView view;
  std::string_view other;  // Its type, where it is none of weights.
  std::uint64_t offset = 0;

  std::size_t bytes() const {
    if (other.empty()) return view.bytes();
    return Size(view.elements()) * DTypeBytes(other);
  }
};

// The types that no weight has, and whose elements are not in blocks.
bool IsOther(std::string_view type) {
  const auto others = {"I8", "I16", "I32", "I64", "F64"};
  return std::ranges::find(others, type) != others.end();
}

Result<WeightFormat> FormatOf(std::uint32_t type, const std::string& what) {
  const std::string_view name = type < kTensorTypes.size() ? kTensorTypes[type] : "";
  if (const auto format = ParseWeightFormat(name)) return *format;
  std::string known;
  for (const WeightFormatInfo& info : kWeightFormatInfos) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", info.name);
  }
  return Invalid("{} is stored as {}, which is not supported; these formats are: {}", what,
                 name.empty() ? fmt::format("the unknown type {}", type) : std::string(name),
                 known);
}

// The shape from outermost to innermost; the file has it the other way round.
Result<std::vector<std::int64_t>> ReadShape(std::string_view where, const std::string& what,
                                            ByteReader* reader) {
  const auto dimensions = reader->Read<std::uint32_t>();
  if (!dimensions) return GgufTruncated(where, what);
  if (*dimensions < 1 || *dimensions > kMostGgufDimensions) {
    return Invalid("{}: {} has {} dimensions; tensors have from 1 to {}", where, what, *dimensions,
                   kMostGgufDimensions);
  }
  std::vector<std::int64_t> shape(*dimensions);
  std::int64_t elements = 1;
  constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max() / 8;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const auto size = reader->Read<std::uint64_t>();
    if (!size) return GgufTruncated(where, what);
    if (*size < 1 || *size > static_cast<std::uint64_t>(kMostElements / elements)) {
      return Invalid("{}: {} has the impossible dimension {}", where, what, *size);
    }
    shape[i] = *size;
    elements *= shape[i];
  }
  return shape;
}

Result<TensorInfo> ReadTensorInfo(std::uint64_t number, std::string_view where,
                                  ByteReader* reader) {
  TensorInfo info;
  const auto name = reader->ReadText<std::uint64_t>();
  if (!name) return GgufTruncated(where, fmt::format("the name of tensor {}", number));
  info.name = *name;
  const std::string what = fmt::format("tensor '{}'", Printable(*name));
  FT_ASSIGN_OR_RETURN(info.view.shape, ReadShape(where, what, reader));
  const auto type = reader->Read<std::uint32_t>();
  const auto offset = reader->Read<std::uint64_t>();
  if (!type || !offset) return GgufTruncated(where, what);
  info.offset = *offset;
  if (*type < kTensorTypes.size() && IsOther(kTensorTypes[*type])) {
    info.other = kTensorTypes[*type];
    return info;
  }
  FT_ASSIGN_OR_RETURN(info.view.format, FormatOf(*type, fmt::format("{}: {}", where, what)));
  const std::int64_t block = InfoOf(info.view.format).block_elements;
  if (info.view.shape.back() % block != 0) {
    return Invalid("{}: {} has rows of {} elements, which are no whole {} blocks of {}", where,
                   what, info.view.shape.back(), FormatName(info.view.format), block);
  }
  return info;
}

Result<std::span<const std::byte>> Place(const TensorInfo& info, const Layout& layout,
                                         std::string_view where) {
  const std::string what = fmt::format("tensor '{}'", Printable(info.name));
  if (info.offset % layout.alignment != 0) {
    return Invalid("{}: {} begins at {}, which is not aligned to {}", where, what, info.offset,
                   layout.alignment);
  }
  const std::size_t bytes = info.bytes();
  if (info.offset > layout.data.size() || bytes > layout.data.size() - info.offset) {
    return Invalid(
        "{}: {} has {} bytes from {} on, but there are {} bytes of data; the file is truncated",
        where, what, bytes, info.offset, layout.data.size());
  }
  return layout.data.subspan(info.offset, bytes);
}

Status CheckOverlaps(std::vector<GgufExtent> extents, std::string_view where) {
  std::ranges::sort(extents, {}, &GgufExtent::begin);
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin >= extents[i - 1].end) continue;
    return Invalid("{}: tensors '{}' and '{}' overlap", where, Printable(extents[i - 1].name),
                   Printable(extents[i].name));
  }
  return {};
}

Status CheckHead(std::string_view where, ByteReader* reader) {
  const auto magic = reader->Read<std::uint32_t>();
  if (magic != kMagic) {
    return Invalid("{}: is not a GGUF file: it does not begin with 'GGUF'", where);
  }
  const auto version = reader->Read<std::uint32_t>();
  if (!version) return GgufTruncated(where, "its head");
  if (*version == 2 || *version == 3) return {};
  const bool swapped = *version != 0 && *version % 0x10000 == 0;
  return InvalidInput(
      swapped ? fmt::format("{}: is a big-endian GGUF file; only little-endian ones are supported",
                            where)
              : fmt::format("{}: has version {} of GGUF; 2 and 3 are supported", where, *version));
}

// "NAME-00002-of-00003.gguf" for part 2 of 3 of the model that `first` is part 1 of; empty where
// its name has not that form.
std::string PartName(const fs::path& first, std::int64_t number, std::int64_t count) {
  const std::string name = first.filename().string();
  const std::string ending = fmt::format("-00001-of-{:05}.gguf", count);
  if (!name.ends_with(ending)) return {};
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.substr(0, name.size() - ending.size()), number,
                     count);
}

}  // namespace

std::uint32_t GgufTensorType(WeightFormat format) {
  const auto* found = std::ranges::find(kTensorTypes, FormatName(format));
  return static_cast<std::uint32_t>(found - kTensorTypes.begin());
}

Result<GgufContents> ParseGguf(std::span<const std::byte> file, std::string_view where) {
  ByteReader reader(file);
  FT_RETURN_IF_ERROR(CheckHead(where, &reader));
  const auto tensors = reader.Read<std::uint64_t>();
  const auto keys = reader.Read<std::uint64_t>();
  if (!tensors || !keys) return GgufTruncated(where, "its head");
  GgufContents contents;
  FT_ASSIGN_OR_RETURN(contents.metadata, ReadGgufMetadata(*keys, where, &reader));
  std::int64_t alignment = kUsualGgufAlignment;
  constexpr std::int64_t kMostAlignment = 1 << 20;
  if (const Status read =
          contents.metadata.Integer("general.alignment", 1, kMostAlignment, &alignment);
      !read.ok() || !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
    return Invalid("{}: the key general.alignment must be a power of two up to {}", where,
                   kMostAlignment);
  }
  std::vector<TensorInfo> infos;
  for (std::uint64_t i = 0; i < *tensors; ++i) {
    FT_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo(i + 1, where, &reader));
    infos.push_back(std::move(info));
  }
  Layout layout{.alignment = static_cast<std::uint64_t>(alignment)};
  const std::uint64_t begin =
      (reader.position() + layout.alignment - 1) / layout.alignment * layout.alignment;
  if (begin < file.size()) layout.data = file.subspan(begin);
  std::vector<GgufExtent> extents;
  for (const TensorInfo& info : infos) {
    FT_ASSIGN_OR_RETURN(const auto data, Place(info, layout, where));
    extents.push_back({info.offset, info.offset + data.size(), info.name});
    if (contents.tensors.contains(info.name) || contents.others.contains(info.name)) {
      return Invalid("{}: has tensor '{}' twice", where, Printable(info.name));
    }
    if (info.other.empty()) {
      contents.tensors.emplace(info.name,
                               TensorView{info.view.format, info.view.shape, data.data()});
    } else {
      contents.others.emplace(info.name, OtherTensor{std::string(info.other), data});
    }
  }
  FT_RETURN_IF_ERROR(CheckOverlaps(std::move(extents), where));
  return contents;
}

Status GgufFile::AddPart(const fs::path& path, std::int64_t number, std::int64_t count) {
  FT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  FT_ASSIGN_OR_RETURN(GgufContents contents, ParseGguf(file->bytes(), path.string()));
  std::int64_t own_number = 0;
  std::int64_t own_count = 1;
  for (const auto& [key, value] :
       {std::pair("split.no", &own_number), std::pair("split.count", &own_count)}) {
    if (const Status read = contents.metadata.Integer(key, 0, kMostParts, value); !read.ok()) {
      return Invalid("{}: {}", path.string(), read.error().message);
    }
  }
  if (number > 0 && (own_number != number || own_count != count)) {
    return Invalid("{}: says that it is part {} of {}, but is named as part {} of {}",
                   path.string(), own_number + 1, own_count, number + 1, count);
  }
  const auto add = [&](const auto& from, auto* to) -> Status {
    for (const auto& [name, tensor] : from) {
      if (tensors_.contains(name) || others_.contains(name)) {
        return Invalid("{}: has tensor '{}', which another part has too", path.string(),
                       Printable(name));
      }
      to->emplace(name, tensor);
    }
    return {};
  };
  FT_RETURN_IF_ERROR(add(contents.tensors, &tensors_));
  FT_RETURN_IF_ERROR(add(contents.others, &others_));
  parts_.push_back(std::move(file));
  if (number == 0) metadata_ = std::move(contents.metadata);
  return {};
}

Status GgufFile::OpenOtherParts() {
  std::int64_t number = 0;
  std::int64_t count = 1;
  // Their kinds were checked when the part was added.
  FT_RETURN_IF_ERROR(metadata_.Integer("split.no", 0, kMostParts, &number));
  FT_RETURN_IF_ERROR(metadata_.Integer("split.count", 0, kMostParts, &count));
  if (count <= 1) return {};
  const std::string expected = fmt::format("NAME-00001-of-{:05}.gguf", count);
  if (number != 0) {
    return Invalid("{}: is part {} of {}; name the first part, {}", path_.string(), number + 1,
                   count, expected);
  }
  if (PartName(path_, 1, count).empty()) {
    return Invalid(
        "{}: is the first of {} parts, but is not named {}, by which the others are found",
        path_.string(), count, expected);
  }
  for (std::int64_t i = 1; i < count; ++i) {
    FT_RETURN_IF_ERROR(AddPart(path_.parent_path() / PartName(path_, i + 1, count), i, count));
  }
  const std::int64_t there = std::ssize(tensors_) + std::ssize(others_);
  std::int64_t tensors = there;
  if (const Status read = metadata_.Integer("split.tensors.count", 0,
                                            std::numeric_limits<std::int64_t>::max(), &tensors);
      !read.ok() || tensors != there) {
    return Invalid(
        "{}: the {} parts have {} tensors together, not what the key split.tensors.count says",
        path_.string(), count, there);
  }
  return {};
}

Result<GgufFile> GgufFile::Open(const fs::path& path) {
  GgufFile opened;
  opened.path_ = path;
  FT_RETURN_IF_ERROR(opened.AddPart(path, 0, 1));
  FT_RETURN_IF_ERROR(opened.OpenOtherParts());
  return opened;
}

}  // namespace foretoken
