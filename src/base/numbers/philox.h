#pragma once

#include <array>
#include <cstdint>

namespace foretoken {

/// What a random draw is for; streams of different purposes never share a counter.
enum class NoisePurpose : std::uint32_t {
  kSampling = 0,    ///< The Gumbel noise of docs/understand/verification.md.
  kScript = 1,      ///< Scripted acceptance of timing studies.
  kDrafting = 2,    ///< Draws of drafters that do not follow the target's noise.
  kAcceptance = 3,  ///< Whether rejection verification takes a proposed token.
};

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
constexpr PhiloxBlock Philox4x32(PhiloxBlock counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return counter;
}

/// The 32-bit draw of `token` at `position` under `seed`: word `token % 4` of the block with
/// counter (token / 4, position low, position high, purpose).
constexpr std::uint32_t PhiloxDraw(std::uint64_t seed, std::uint64_t position, std::uint32_t token,
                                   NoisePurpose purpose) {
  const PhiloxBlock block =
      Philox4x32({token / 4, static_cast<std::uint32_t>(position),
                  static_cast<std::uint32_t>(position >> 32), static_cast<std::uint32_t>(purpose)},
                 seed);
  return block[token % 4];
}

/// Maps a draw to the open interval (0, 1): (draw + 1/2) / 2^32, exact in double.
constexpr double UnitInterval(std::uint32_t draw) { return (draw + 0.5) * 0x1p-32; }

}  // namespace foretoken
