#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace foretoken {

// How SentencePiece spells tokens, and vocabularies that come from it.

/// A space: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// The byte that a token spelled <0xHH> stands for; nothing where it is spelled otherwise.
inline std::optional<char> FallbackByte(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling.back() != '>') return {};
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(spelling.data() + 3, spelling.data() + 5, byte, 16);
  if (error != std::errc() || end != spelling.data() + 5) return {};
  return static_cast<char>(byte);
}

}  // namespace foretoken
