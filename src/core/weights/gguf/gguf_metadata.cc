#include "core/weights/gguf/gguf_metadata.h"

#include <fmt/core.h>

#include <array>

#include "base/text/printable.h"

namespace foretoken {
namespace {

// By GgufType; strings and arrays have no size of their own.
constexpr std::array<std::size_t, 13> kTypeBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <typename T>
std::optional<GgufValue> ReadNumber(ByteReader* reader) {
  const std::optional<T> read = reader->Read<T>();
  if (!read) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    return GgufValue(static_cast<double>(*read));
  } else if constexpr (std::is_signed_v<T>) {
    return GgufValue(static_cast<std::int64_t>(*read));
  } else {
    return GgufValue(static_cast<std::uint64_t>(*read));
  }
}

// A value that is neither string nor array.
std::optional<GgufValue> ReadScalar(GgufType type, ByteReader* reader) {
  switch (type) {
    case GgufType::kUint8:
      return ReadNumber<std::uint8_t>(reader);
    case GgufType::kInt8:
      return ReadNumber<std::int8_t>(reader);
    case GgufType::kUint16:
      return ReadNumber<std::uint16_t>(reader);
    case GgufType::kInt16:
      return ReadNumber<std::int16_t>(reader);
    case GgufType::kUint32:
      return ReadNumber<std::uint32_t>(reader);
    case GgufType::kInt32:
      return ReadNumber<std::int32_t>(reader);
    case GgufType::kFloat32:
      return ReadNumber<float>(reader);
    case GgufType::kUint64:
      return ReadNumber<std::uint64_t>(reader);
    case GgufType::kInt64:
      return ReadNumber<std::int64_t>(reader);
    case GgufType::kFloat64:
      return ReadNumber<double>(reader);
    default:
      const auto read = reader->Read<std::uint8_t>();
      if (!read) return std::nullopt;
      return GgufValue(*read != 0);
  }
}

// An array whose elements all lie in the file. `what` names it in errors.
Result<GgufArray> ReadArray(std::string_view where, const std::string& what, ByteReader* reader) {
  const auto type = reader->Read<std::uint32_t>();
  const auto count = reader->Read<std::uint64_t>();
  if (!type || !count) return GgufTruncated(where, what);
  if (*type >= kTypeBytes.size()) {
    return Invalid("{}: {} has elements of the unknown type {}", where, what, *type);
  }
  GgufArray array{.type = static_cast<GgufType>(*type), .count = *count};
  if (array.type == GgufType::kArray) {
    return Invalid("{}: {} is an array of arrays, which no model needs", where, what);
  }
  ByteReader elements = *reader;
  if (array.type == GgufType::kString) {
    for (std::uint64_t i = 0; i < array.count; ++i) {
      if (!elements.ReadText<std::uint64_t>()) return GgufTruncated(where, what);
    }
  } else {
    const std::size_t bytes = kTypeBytes[*type];
    if (array.count > elements.left() / bytes) return GgufTruncated(where, what);
    elements.Skip(array.count * bytes);
  }
  array.bytes = *reader->Skip(elements.position() - reader->position());
  return array;
}

Error WrongKind(std::string_view key, std::string_view wanted) {
  return Invalid("the key {} must be {}", Printable(key), wanted);
}

}  // namespace

Error GgufTruncated(std::string_view where, std::string_view in) {
  return Invalid("{}: ends inside {}; the file is truncated", where, in);
}

std::vector<std::string_view> GgufArray::Strings() const {
  std::vector<std::string_view> strings;
  if (type != GgufType::kString) return strings;
  strings.reserve(count);
  ByteReader reader(bytes);
  while (strings.size() < count) strings.push_back(*reader.ReadText<std::uint64_t>());
  return strings;
}

std::vector<double> GgufArray::Numbers() const {
  std::vector<double> numbers;
  if (type == GgufType::kString) return numbers;
  numbers.reserve(count);
  ByteReader reader(bytes);
  while (numbers.size() < count) {
    numbers.push_back(std::visit(
        [](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_arithmetic_v<Value>) return static_cast<double>(value);
          return 0.0;
        },
        *ReadScalar(type, &reader)));
  }
  return numbers;
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Status GgufMetadata::Integer(std::string_view key, std::int64_t low, std::int64_t high,
                             std::int64_t* value) const {
  const GgufValue* found = Find(key);
  if (found == nullptr) return {};
  std::optional<std::int64_t> given;
  if (const auto* number = std::get_if<std::int64_t>(found)) given = *number;
  if (const auto* number = std::get_if<std::uint64_t>(found);
      number != nullptr && *number <= INT64_MAX) {
    given = *number;
  }
  if (!given || *given < low || *given > high) {
    return WrongKind(key, fmt::format("an integer from {} to {}", low, high));
  }
  *value = *given;
  return {};
}

template <typename T, typename Value>
Status GgufMetadata::Read(std::string_view key, std::string_view wanted, Value* value) const {
  const GgufValue* found = Find(key);
  if (found == nullptr) return {};
  const auto* read = std::get_if<T>(found);
  if (read == nullptr) return WrongKind(key, wanted);
  *value = *read;
  return {};
}

Status GgufMetadata::Number(std::string_view key, double* value) const {
  return Read<double>(key, "a number with a fraction (f32 or f64)", value);
}

Status GgufMetadata::Flag(std::string_view key, bool* value) const {
  return Read<bool>(key, "true or false", value);
}

Status GgufMetadata::String(std::string_view key, std::string* value) const {
  return Read<std::string_view>(key, "a string", value);
}

Status GgufMetadata::Array(std::string_view key, std::optional<GgufArray>* value) const {
  return Read<GgufArray>(key, "an array", value);
}

Result<GgufMetadata> ReadGgufMetadata(std::uint64_t count, std::string_view where,
                                      ByteReader* reader) {
  GgufMetadata metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto key = reader->ReadText<std::uint64_t>();
    if (!key) return GgufTruncated(where, fmt::format("the {}th metadata key", i + 1));
    const std::string what = fmt::format("the value of {}", Printable(*key));
    const auto type = reader->Read<std::uint32_t>();
    if (!type) return GgufTruncated(where, what);
    if (*type >= kTypeBytes.size()) {
      return Invalid("{}: {} has the unknown type {}", where, what, *type);
    }
    const std::size_t begin = reader->position();
    std::optional<GgufValue> value;
    if (static_cast<GgufType>(*type) == GgufType::kString) {
      if (const auto text = reader->ReadText<std::uint64_t>()) value = *text;
    } else if (static_cast<GgufType>(*type) == GgufType::kArray) {
      FT_ASSIGN_OR_RETURN(value, ReadArray(where, what, reader));
    } else {
      value = ReadScalar(static_cast<GgufType>(*type), reader);
    }
    if (!value) return GgufTruncated(where, what);
    if (!metadata.Add(*key, *value, {static_cast<GgufType>(*type), reader->Since(begin)})) {
      return Invalid("{}: has the key {} twice", where, Printable(*key));
    }
  }
  return metadata;
}

}  // namespace foretoken
