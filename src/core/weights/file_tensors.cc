#include "core/weights/file_tensors.h"

#include <optional>
#include <utility>

namespace foretoken {
namespace {

constexpr std::string_view kBytes = "U8";

std::optional<WeightFormat> FloatFormat(std::string_view dtype) {
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
    if (FormatName(format) == dtype) return format;
  }
  return std::nullopt;
}

template <typename Map>
bool MoveWithin(std::string_view name, Map* from, Map* to) {
  const auto found = from->find(name);
  return found != from->end() && to->insert(from->extract(found)).inserted;
}

}  // namespace

std::size_t DTypeBytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::size_t> kOthers[] = {
      {kBytes, 1},    {"BOOL", 1}, {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"F8_E8M0", 1}, {"I16", 2},  {"U16", 2}, {"I32", 4},     {"U32", 4},
      {"I64", 8},     {"U64", 8},  {"F64", 8}};
  if (const auto format = FloatFormat(dtype)) return FormatBytes(*format, 1);
  for (const auto& [name, bytes] : kOthers) {
    if (name == dtype) return bytes;
  }
  return 0;
}

bool FileTensors::Add(std::string_view name, std::string_view dtype,
                      std::vector<std::int64_t> shape, std::span<const std::byte> data) {
  const std::string key(name);
  if (tensors.contains(key) || bytes.contains(key) || others.contains(key)) return false;
  if (const auto format = FloatFormat(dtype)) {
    tensors.emplace(key, TensorView{*format, std::move(shape), data.data()});
  } else if (dtype == kBytes) {
    bytes.emplace(key, ByteTensor{std::move(shape), data});
  } else {
    others.emplace(key, OtherTensor{std::string(dtype), data});
  }
  return true;
}

bool FileTensors::Move(std::string_view name, FileTensors* to) {
  return MoveWithin(name, &tensors, &to->tensors) || MoveWithin(name, &bytes, &to->bytes) ||
         MoveWithin(name, &others, &to->others);
}

Result<TensorFile> TensorFile::Open(const std::filesystem::path& path, Parse parse) {
  TensorFile opened;
  FT_ASSIGN_OR_RETURN(opened.file, MappedFile::Open(path));
  FT_ASSIGN_OR_RETURN(opened.holds, parse(opened.file->bytes(), path.string()));
  return opened;
}

}  // namespace foretoken
