#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretoken {

/// SHA-256 (FIPS 180-4), for fingerprints. Feed bytes with `Update`, then call `Hex` once.
class Sha256 {
 public:
  void Update(std::string_view bytes);
  /// The digest of all bytes so far as 64 lower-case hexadecimal digits; ends the computation.
  std::string Hex();

 private:
  static constexpr std::size_t kBlock = 64;

  void Compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlock> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace foretoken
