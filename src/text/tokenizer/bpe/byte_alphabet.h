#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foretoken {

/// GPT-2's spelling of bytes as visible characters: vocabularies of byte-level BPE are written in
/// it. Printable Latin-1 stands for itself, the 68 other bytes for U+0100 onwards.
std::string SpellBytes(std::string_view bytes);

/// The bytes that `spelling` stands for; nothing where it holds a character outside the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace foretoken
