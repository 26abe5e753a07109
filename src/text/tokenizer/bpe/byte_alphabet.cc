#include "text/tokenizer/bpe/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/text/utf8.h"

namespace foretoken {
namespace {

constexpr std::size_t kCharacters = 256 + 68;

struct Alphabet {
  std::array<std::uint16_t, 256> character{};
  std::array<std::int16_t, kCharacters> byte{};
};

constexpr bool StandsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  for (std::int16_t& byte : alphabet.byte) byte = -1;
  std::uint16_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto character = StandsForItself(byte) ? static_cast<std::uint16_t>(byte) : next++;
    alphabet.character[byte] = character;
    alphabet.byte[character] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

std::string SpellBytes(std::string_view bytes) {
  std::string spelling;
  for (const char c : bytes) {
    AppendUtf8(kAlphabet.character[static_cast<std::uint8_t>(c)], &spelling);
  }
  return spelling;
}

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  for (std::uint32_t character = 0; !spelling.empty();) {
    if (!TakeUtf8(&spelling, &character)) return std::nullopt;
    if (character >= kCharacters || kAlphabet.byte[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[character]);
  }
  return bytes;
}

}  // namespace foretoken
