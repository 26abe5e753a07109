#include "text/jinja/syntax/escapes.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "base/text/utf8.h"

namespace foretoken::jinja {
namespace {

/// Takes a number of `base` with up to `most` digits off the front of `rest`; how many there were.
std::size_t TakeNumber(std::string_view* rest, std::size_t most, int base, std::uint32_t* number) {
  const std::string_view digits = rest->substr(0, most);
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), *number, base);
  const auto taken = static_cast<std::size_t>(result.ptr - digits.data());
  rest->remove_prefix(taken);
  return taken;
}

bool AppendCode(std::uint32_t code, std::string* text, std::string* problem) {
  if (!IsScalarValue(code)) {
    *problem = fmt::format("a string has the escape of {:#x}, which is no character", code);
    return false;
  }
  AppendUtf8(code, text);
  return true;
}

}  // namespace

bool Unescape(std::string_view literal, std::string* text, std::string* problem) {
  while (!literal.empty()) {
    const std::size_t plain = std::min(literal.find('\\'), literal.size());
    text->append(literal.substr(0, plain));
    literal.remove_prefix(plain);
    if (literal.size() < 2) return true;  // Nothing is left: a string does not end so.
    const char kind = literal[1];
    constexpr std::string_view kLetters = "\\'\"abfnrtv\n";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const std::size_t letter = kLetters.find(kind);
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (letter != std::string_view::npos) {
      // A line feed behind a backslash goes with it.
      if (letter < kMeanings.size()) *text += kMeanings[letter];
      literal.remove_prefix(2);
    } else if (digits > 0) {
      literal.remove_prefix(2);
      std::uint32_t code = 0;
      if (TakeNumber(&literal, digits, 16, &code) != digits) {
        *problem = fmt::format("the escape \\{} of a string needs {} digits", kind, digits);
        return false;
      }
      if (!AppendCode(code, text, problem)) return false;
    } else if (kind >= '0' && kind <= '7') {
      literal.remove_prefix(1);
      std::uint32_t code = 0;
      TakeNumber(&literal, 3, 8, &code);
      if (!AppendCode(code, text, problem)) return false;
    } else if (kind == 'N') {
      *problem = "names of characters in strings (\\N) are not known";
      return false;
    } else {
      *text += '\\';
      literal.remove_prefix(1);
    }
  }
  return true;
}

}  // namespace foretoken::jinja
