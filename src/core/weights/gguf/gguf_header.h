#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/weight_format.h"
#include "core/weights/gguf/gguf_metadata.h"

namespace foretoken {

/// What stands before the tensors' bytes in a GGUF file (version 3): metadata and, of each tensor,
/// name, shape, format and place. Keys come in their order, tensors as they are added.
class GgufHeader {
 public:
  /// Sets a key, whatever it was.
  void Set(std::string_view key, std::uint32_t value);
  void Set(std::string_view key, float value);
  void Set(std::string_view key, bool value);
  void Set(std::string_view key, std::string_view value);
  void Set(std::string_view key, const char* value) { Set(key, std::string_view(value)); }
  void Set(std::string_view key, std::span<const std::string> values);
  void Set(std::string_view key, std::span<const float> values);
  void Set(std::string_view key, std::span<const std::int32_t> values);
  void SetFlags(std::string_view key, const std::vector<bool>& values);
  /// Sets a key as another file has it.
  void Set(std::string_view key, const GgufEncoded& value);
  /// Takes a key away, where it is there.
  void Erase(const std::string& key) { keys_.erase(key); }

  /// A tensor behind those before it; the shape from outermost to innermost.
  void AddTensor(std::string_view name, std::span<const std::int64_t> shape, WeightFormat format);

  /// The bytes up to the first tensor's. Each tensor's bytes then follow with Padding behind them.
  std::string Bytes() const;
  /// Zeros that bring so many bytes of a tensor to the alignment.
  std::string Padding(std::size_t bytes) const;

 private:
  std::size_t alignment() const;

  std::map<std::string, std::string, std::less<>> keys_;  // Type and value, as written.
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    WeightFormat format;
  };
  std::vector<Tensor> tensors_;
};

}  // namespace foretoken
