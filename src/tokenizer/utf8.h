#pragma once

#include <cstddef>
#include <string_view>

namespace foretoken {

/// What stands at the front of some bytes, read as UTF-8.
struct Utf8Step {
  enum Kind {
    kCharacter,   ///< A whole character of `size` bytes.
    kInvalid,     ///< `size` bytes that no continuation could make a character.
    kIncomplete,  ///< The bytes end inside a character that more bytes could complete.
  };
  Kind kind;
  std::size_t size;
};

/// Reads the front of `bytes`, which must not be empty. Surrogates and overlong forms are invalid;
/// an invalid step covers the longest part that began like a character (Unicode 15, section 3.9).
Utf8Step ReadUtf8(std::string_view bytes);

/// The length of the longest prefix of `bytes` that is valid UTF-8.
std::size_t ValidUtf8Prefix(std::string_view bytes);

inline bool IsUtf8(std::string_view bytes) { return ValidUtf8Prefix(bytes) == bytes.size(); }

}  // namespace foretoken
