#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace foretoken {

/// A set of kinds of characters, a bit each: grammars mostly treat the characters of a kind alike.
using CharacterKinds = std::uint64_t;

inline constexpr CharacterKinds kNoKinds = 0;
/// All that take more than one byte of UTF-8.
inline constexpr CharacterKinds kWideKind = CharacterKinds{1} << 62;
/// Bytes that are no UTF-8.
inline constexpr CharacterKinds kBrokenKind = CharacterKinds{1} << 63;

/// The kind of an ASCII character: a letter below "g", another, upper and lower case apart, a
/// digit, a control character; each other has a kind of its own.
CharacterKinds KindOf(std::uint8_t ascii);
/// The characters of one kind, none for kWideKind and kBrokenKind.
std::span<const std::uint8_t> CharactersOf(CharacterKinds kind);

/// Where a text stands within its last character.
enum class Utf8State : std::uint8_t {
  kWhole,  ///< Behind it.
  kOneMore,
  kTwoMore,
  kThreeMore,
  kAfterE0,  ///< Behind this byte, which not all continuation bytes may follow; likewise the rest.
  kAfterED,
  kAfterF0,
  kAfterF4,
  kBroken,
};
Utf8State NextUtf8(Utf8State state, std::uint8_t byte);

}  // namespace foretoken
