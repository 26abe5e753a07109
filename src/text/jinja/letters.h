#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

// Characters as Python's str knows them.

/// White space that split() and strip() know.
bool IsSpace(std::uint32_t code);
/// Whether repr() shows the character as it is.
bool IsPrintable(std::uint32_t code);
bool IsCased(std::uint32_t code);
bool IsLetter(std::uint32_t code);
bool IsDecimal(std::uint32_t code);
bool IsUpper(std::uint32_t code);
bool IsLower(std::uint32_t code);

/// Whether there are letters with a case, and all of them have this one.
bool AllHaveCase(std::string_view bytes, bool upper);

/// The code point at byte `place` of `bytes`, which are UTF-8, and how many bytes it takes.
std::uint32_t CodeAt(std::string_view bytes, std::size_t place, std::size_t* length);

/// Appends the character's upper or title case, which may be several characters.
void AppendUpper(std::uint32_t code, std::string* out);
void AppendTitle(std::uint32_t code, std::string* out);
/// Appends the lower case of the character at `place`; what it is for a sigma depends on what is
/// around it.
void AppendLower(std::string_view bytes, std::size_t place, std::string* out);

/// What stands for the character `code` at `place` of a text: appends it and returns true, or
/// returns false where the character stays.
using CharacterMap =
    std::function<bool(std::uint32_t code, std::size_t place, std::string* replacement)>;

/// Appends `text` with its characters replaced. What stands for input is input.
bool AppendMapped(const Text& text, const CharacterMap& map, TextBuilder* builder);

}  // namespace foretoken::jinja
