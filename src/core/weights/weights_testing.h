#pragma once

// Helpers of tests that write model folders.

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/half.h"
#include "core/tensor/weight_format.h"
#include "json/json.h"

namespace foretoken {

/// A safetensors file from its header's text and its data.
inline std::string FrameSafetensors(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  }
  return file + header + data;
}

/// Builds a safetensors file tensor by tensor.
class SafetensorsBuilder {
 public:
  void Add(const std::string& name, WeightFormat format, const std::vector<std::int64_t>& shape,
           const std::vector<float>& values) {
    const std::size_t begin = data_.size();
    for (const float value : values) {
      if (format == WeightFormat::kF32) {
        data_.append(reinterpret_cast<const char*>(&value), sizeof(value));
      } else {
        const std::uint16_t bits =
            format == WeightFormat::kBF16 ? FloatToBFloat16(value) : FloatToHalf(value);
        data_.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
      }
    }
    header_[name] = {
        {"dtype", FormatName(format)}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }

  /// The file; a header of odd length leaves the data unaligned.
  std::string Build(bool unaligned = false) const {
    std::string header = header_.dump();
    while ((header.size() % 8 != 0) != unaligned) header += ' ';
    return FrameSafetensors(header, data_);
  }

 private:
  // For normal numbers that half precision holds exactly.
  static std::uint16_t FloatToHalf(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    if ((bits & 0x7FFFFFFFU) == 0) return static_cast<std::uint16_t>(sign);
    return static_cast<std::uint16_t>(sign | (((bits & 0x7FFFFFFFU) - (112U << 23)) >> 13));
  }

  Json header_ = Json::object();
  std::string data_;
};

}  // namespace foretoken
