#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files/byte_reader.h"
#include "base/result.h"

namespace foretoken {

/// Types of metadata values, by their numbers in files.
enum class GgufType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

/// An array of a file's metadata, validated and left where it is. Borrows the file.
struct GgufArray {
  GgufType type = GgufType::kUint8;  ///< The type of its elements.
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;

  /// The elements of an array of strings.
  std::vector<std::string_view> Strings() const;
  /// The elements of an array of any numbers.
  std::vector<double> Numbers() const;
};

/// A metadata value: numbers in the widest type of their kind. Strings borrow the file.
using GgufValue =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

/// A metadata value as it stands in a file. Borrows the file.
struct GgufEncoded {
  GgufType type = GgufType::kUint8;
  std::span<const std::byte> bytes;
};

/// What a GGUF file says about its model, by key; keys that nobody knows are kept. Borrows the
/// file.
class GgufMetadata {
 public:
  /// nullptr where there is no such key.
  const GgufValue* Find(std::string_view key) const;
  const std::map<std::string_view, GgufValue>& values() const { return values_; }
  /// Adds a value, and as what type and which bytes its file has it; false where the key is there
  /// already.
  bool Add(std::string_view key, GgufValue value, GgufEncoded encoded = {}) {
    encoded_.emplace(key, encoded);
    return values_.emplace(key, value).second;
  }
  /// By key, as their file has them: what a copy of the file is to have.
  const std::map<std::string_view, GgufEncoded>& encoded() const { return encoded_; }

  // Each leaves `value` as it is where the key is absent, and refuses a value of another kind.
  Status Integer(std::string_view key, std::int64_t low, std::int64_t high,
                 std::int64_t* value) const;
  Status Number(std::string_view key, double* value) const;
  Status Flag(std::string_view key, bool* value) const;
  Status String(std::string_view key, std::string* value) const;
  Status Array(std::string_view key, std::optional<GgufArray>* value) const;

 private:
  template <typename T, typename Value>
  Status Read(std::string_view key, std::string_view wanted, Value* value) const;

  std::map<std::string_view, GgufValue> values_;
  std::map<std::string_view, GgufEncoded> encoded_;
};

/// The error of a file that ends inside something. `where` names the file.
Error GgufTruncated(std::string_view where, std::string_view in);

/// Reads `count` keys and values. `where` names the file in errors.
Result<GgufMetadata> ReadGgufMetadata(std::uint64_t count, std::string_view where,
                                      ByteReader* reader);

}  // namespace foretoken
