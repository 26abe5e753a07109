#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace foretoken {

/// All of `text` as a number, with no locale and no spaces. False, and `number` as it was, if it is
/// anything else or does not fit.
template <typename Number>
[[nodiscard]] bool ParseNumber(std::string_view text, Number* number) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  *number = parsed;
  return true;
}

}  // namespace foretoken
