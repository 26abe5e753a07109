#include "grammar/json/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "grammar/code_points.h"

namespace foretoken {
namespace {

std::string ClassCharacter(std::uint32_t code) {
  if (code < 0x100) return fmt::format("\\x{:02X}", code);
  return code < 0x10000 ? fmt::format("\\u{:04X}", code) : fmt::format("\\U{:08X}", code);
}

std::string Digits(int count) {
  return count == 0 ? std::string() : fmt::format("[0-9]{{{}}}", count);
}

// Numbers of as many digits as `first` and `last` have, between them; a sequence.
std::string DigitRange(const std::string& first, const std::string& last) {
  const auto size = static_cast<int>(first.size());
  if (size == 0) return "";
  if (first == std::string(size, '0') && last == std::string(size, '9')) return Digits(size);
  const std::string first_rest = first.substr(1);
  const std::string last_rest = last.substr(1);
  if (first[0] == last[0]) {
    return fmt::format("\"{}\" {}", first[0], DigitRange(first_rest, last_rest));
  }
  char low = first[0];
  char high = last[0];
  std::string text;
  if (first_rest != std::string(size - 1, '0')) {
    text += fmt::format("\"{}\" {} | ", low, DigitRange(first_rest, std::string(size - 1, '9')));
    ++low;
  }
  if (last_rest != std::string(size - 1, '9')) {
    text += fmt::format("\"{}\" {} | ", high, DigitRange(std::string(size - 1, '0'), last_rest));
    --high;
  }
  if (low <= high) {
    text += fmt::format("[{}-{}] {}", low, high, Digits(size - 1));
  } else {
    text.resize(text.size() - 3);
  }
  return fmt::format("({})", text);
}

// Alternatives for integers from `first` >= 0 to `last`.
std::vector<std::string> Unsigned(std::int64_t first, std::int64_t last) {
  std::vector<std::string> parts;
  while (first <= last) {
    const std::string digits = std::to_string(first);
    const std::int64_t longest = std::stoll(std::string(digits.size(), '9'));
    parts.push_back(DigitRange(digits, std::to_string(std::min(last, longest))));
    first = longest + 1;
  }
  return parts;
}

std::string Group(const std::vector<std::string>& parts) {
  return fmt::format("({})", fmt::join(parts, " | "));
}

}  // namespace

std::string_view JsonRules() {
  return R"(value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)* ws)? "}"
array ::= "[" ws (value ("," ws value)* ws)? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9A-Ca-cEFef] hex{3} | [Dd] [0-7] hex{2}))
hex ::= [0-9A-Fa-f]
number ::= integer fraction? ([Ee] [-+]? [0-9]{1,2})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
fraction ::= "." [0-9]{1,16}
ws ::= (" " | "\n" [ \t]{0,20})?
)";
}

std::optional<std::string> JsonCharacter(const std::vector<CodeRange>& ranges) {
  const auto has = [&](std::uint32_t code) {
    return !IntersectRanges(ranges, {{code, code}}).empty();
  };
  std::vector<std::string> parts;
  const auto plain = IntersectRanges(
      ranges, {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xD7FF}, {0xE000, kLastCodePoint}});
  if (!plain.empty()) {
    std::string text = "[";
    for (const CodeRange& range : plain) {
      text += ClassCharacter(range.first);
      if (range.last > range.first) text += fmt::format("-{}", ClassCharacter(range.last));
    }
    parts.push_back(fmt::format("{}]", text));
  }
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  for (std::size_t i = 0; i < kEscaped.size(); ++i) {
    if (has(static_cast<unsigned char>(kEscaped[i]))) {
      parts.push_back(GrammarLiteral(fmt::format("\\{}", kLetters[i])));
    }
  }
  if (parts.empty()) return std::nullopt;
  return parts.size() == 1 ? parts[0] : Group(parts);
}

std::string JsonIntegers(std::int64_t first, std::int64_t last) {
  std::vector<std::string> parts;
  if (first < 0) {
    for (const std::string& part : Unsigned(std::max<std::int64_t>(1, -last), -first)) {
      parts.push_back(fmt::format("\"-\" {}", part));
    }
  }
  for (std::string& part : Unsigned(std::max<std::int64_t>(0, first), last)) {
    parts.push_back(std::move(part));
  }
  return Group(parts);
}

std::string JsonNumbers(std::int64_t first, std::int64_t last) {
  // n.f lies between n and n + 1, so both must be within the bounds; likewise below zero.
  std::vector<std::string> parts = {JsonIntegers(first, last)};
  const std::int64_t low = std::max<std::int64_t>(0, first);
  if (low < last) parts.push_back(fmt::format("{} fraction", JsonIntegers(low, last - 1)));
  const std::int64_t negative_low = std::max<std::int64_t>(0, -last);
  if (negative_low < -first) {
    parts.push_back(fmt::format("\"-\" {} fraction", JsonIntegers(negative_low, -first - 1)));
  }
  return Group(parts);
}

std::optional<std::string> JsonStringFormat(std::string_view format) {
  const std::string date =
      R"([0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]))"
      R"( | ("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30"))"
      R"( | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])))";
  const std::string hour_minute = R"(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])";
  const std::string time = fmt::format(R"({} ":" [0-5] [0-9] ("." [0-9]{{1,6}})? ("Z" | [+-] {}))",
                                       hour_minute, hour_minute);
  if (format == "date") return fmt::format("({})", date);
  if (format == "time") return fmt::format("({})", time);
  if (format == "date-time") return fmt::format("({} \"T\" {})", date, time);
  if (format == "uuid") return R"((hex{8} ("-" hex{4}){3} "-" hex{12}))";
  if (format == "email") {
    return R"(([A-Za-z0-9] ([._+-]? [A-Za-z0-9]){0,30} "@" [a-z0-9] ("-"? [a-z0-9]){0,30})"
           R"( ("." [a-z] [a-z]{1,10}){1,2}))";
  }
  if (format == "ipv4") {
    const std::string octet = JsonIntegers(0, 255);
    return fmt::format("({} (\".\" {}){{3}})", octet, octet);
  }
  return std::nullopt;
}

}  // namespace foretoken
