#include "core/weights/gguf/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/weights/gguf/gguf_file.h"

namespace foretoken {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";

template <typename T>
void Append(T value, std::string* out) {
  static_assert(std::endian::native == std::endian::little);
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void AppendString(std::string_view text, std::string* out) {
  Append<std::uint64_t>(text.size(), out);
  out->append(text);
}

std::string Typed(GgufType type) {
  std::string bytes;
  Append(static_cast<std::uint32_t>(type), &bytes);
  return bytes;
}

template <typename T>
std::string TypedScalar(GgufType type, T value) {
  std::string bytes = Typed(type);
  Append(value, &bytes);
  return bytes;
}

std::string TypedArray(GgufType type, std::size_t count) {
  std::string bytes = Typed(GgufType::kArray);
  Append(static_cast<std::uint32_t>(type), &bytes);
  Append<std::uint64_t>(count, &bytes);
  return bytes;
}

template <typename T>
std::string TypedNumbers(GgufType type, std::span<const T> values) {
  std::string bytes = TypedArray(type, values.size());
  for (const T value : values) Append(value, &bytes);
  return bytes;
}

}  // namespace

void GgufHeader::Set(std::string_view key, std::uint32_t value) {
  keys_[std::string(key)] = TypedScalar(GgufType::kUint32, value);
}
void GgufHeader::Set(std::string_view key, float value) {
  keys_[std::string(key)] = TypedScalar(GgufType::kFloat32, value);
}
void GgufHeader::Set(std::string_view key, bool value) {
  keys_[std::string(key)] = TypedScalar(GgufType::kBool, static_cast<std::uint8_t>(value));
}
void GgufHeader::Set(std::string_view key, std::string_view value) {
  std::string& bytes = keys_[std::string(key)] = Typed(GgufType::kString);
  AppendString(value, &bytes);
}
void GgufHeader::Set(std::string_view key, std::span<const std::string> values) {
  std::string& bytes = keys_[std::string(key)] = TypedArray(GgufType::kString, values.size());
  for (const std::string& value : values) AppendString(value, &bytes);
}
void GgufHeader::Set(std::string_view key, std::span<const float> values) {
  keys_[std::string(key)] = TypedNumbers(GgufType::kFloat32, values);
}
void GgufHeader::Set(std::string_view key, std::span<const std::int32_t> values) {
  keys_[std::string(key)] = TypedNumbers(GgufType::kInt32, values);
}
void GgufHeader::SetFlags(std::string_view key, const std::vector<bool>& values) {
  std::string& bytes = keys_[std::string(key)] = TypedArray(GgufType::kBool, values.size());
  for (const bool value : values) Append(static_cast<std::uint8_t>(value), &bytes);
}
void GgufHeader::Set(std::string_view key, const GgufEncoded& value) {
  std::string& bytes = keys_[std::string(key)] = Typed(value.type);
  bytes.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufHeader::AddTensor(std::string_view name, std::span<const std::int64_t> shape,
                           WeightFormat format) {
  tensors_.push_back({std::string(name), {shape.begin(), shape.end()}, format});
}

// The key may have come from a file that was checked: an integer of any width.
std::size_t GgufHeader::alignment() const {
  const auto found = keys_.find(kAlignmentKey);
  if (found == keys_.end()) return kUsualGgufAlignment;
  const std::string_view value = std::string_view(found->second).substr(sizeof(std::uint32_t));
  std::uint64_t alignment = 0;
  std::memcpy(&alignment, value.data(), std::min(value.size(), sizeof(alignment)));
  return alignment;
}

std::string GgufHeader::Padding(std::size_t bytes) const {
  return std::string((alignment() - bytes % alignment()) % alignment(), '\0');
}

std::string GgufHeader::Bytes() const {
  std::string bytes = "GGUF";
  Append(kVersion, &bytes);
  Append<std::uint64_t>(tensors_.size(), &bytes);
  Append<std::uint64_t>(keys_.size(), &bytes);
  for (const auto& [key, value] : keys_) {
    AppendString(key, &bytes);
    bytes += value;
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    AppendString(tensor.name, &bytes);
    Append(static_cast<std::uint32_t>(tensor.shape.size()), &bytes);
    std::int64_t elements = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      Append(static_cast<std::uint64_t>(tensor.shape[i]), &bytes);
      elements *= tensor.shape[i];
    }
    Append(GgufTensorType(tensor.format), &bytes);
    Append(offset, &bytes);
    const std::size_t size = FormatBytes(tensor.format, elements);
    offset += size + Padding(size).size();
  }
  return bytes + Padding(bytes.size());
}

}  // namespace foretoken
