#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretoken {

inline constexpr std::uint32_t kLastCodePoint = 0x10FFFF;
/// What stands for bytes that are no UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Whether `code` is a character that UTF-8 can carry: in range and no surrogate.
inline bool IsScalarValue(std::uint32_t code) {
  return code <= kLastCodePoint && (code < 0xD800 || code > 0xDFFF);
}

/// How many bytes `code`, a scalar value, takes.
inline int Utf8Length(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/// Appends `code`, a scalar value, as UTF-8.
void AppendUtf8(std::uint32_t code, std::string* out);

/// What stands at the front of some bytes, read as UTF-8.
struct Utf8Step {
  enum Kind {
    kCharacter,   ///< A whole character of `size` bytes.
    kInvalid,     ///< `size` bytes that no continuation could make a character.
    kIncomplete,  ///< The bytes end inside a character that more bytes could complete.
  };
  Kind kind;
  std::size_t size;
  std::uint32_t code = 0;  ///< The code of a character.
};

/// Reads the front of `bytes`, which must not be empty. Surrogates and overlong forms are invalid;
/// an invalid step covers the longest part that began like a character (Unicode 15, section 3.9).
Utf8Step ReadUtf8(std::string_view bytes);

/// Takes the character at the front of `text` off it; false where that is not valid UTF-8.
bool TakeUtf8(std::string_view* text, std::uint32_t* code);

/// The length of the longest prefix of `bytes` that is valid UTF-8.
std::size_t ValidUtf8Prefix(std::string_view bytes);

/// How many characters `text`, which is UTF-8, has.
std::size_t CharactersIn(std::string_view text);

/// What a message repeats of text that somebody sent: up to `most` bytes, whole characters, with
/// "..." where there were more.
std::string Shortened(std::string_view text, std::size_t most = 120);

inline bool IsUtf8(std::string_view bytes) { return ValidUtf8Prefix(bytes) == bytes.size(); }

}  // namespace foretoken
