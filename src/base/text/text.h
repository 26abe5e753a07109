#pragma once

#include <strings.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace foretoken {

/// The white space of ASCII.
inline constexpr std::string_view kSpaces = " \t\n\v\f\r";

/// `text` without the white space around it.
inline std::string_view Trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

/// Whether they are the same but for the case of ASCII's letters.
inline bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// `text` with `to` wherever it has `from`.
inline std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

}  // namespace foretoken
