#pragma once

#include <string>
#include <string_view>

namespace foretoken::jinja {

/// What a string literal stands for, given what is between its quotes: Python's escapes are
/// replaced, and a backslash before anything else stays. False: `problem` says what is wrong.
bool Unescape(std::string_view literal, std::string* text, std::string* problem);

}  // namespace foretoken::jinja
