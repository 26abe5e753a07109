#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "base/utf8.h"
#include "grammar/code_points.h"
#include "grammar/json/json_text.h"

namespace foretoken {
namespace {

constexpr int kMaxGroups = 30;  // One within the other.

using Ranges = std::vector<CodeRange>;

const Ranges& DigitClass() {
  static const Ranges ranges = {{'0', '9'}};
  return ranges;
}
const Ranges& WordClass() {
  static const Ranges ranges = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return ranges;
}
const Ranges& SpaceClass() {
  static const Ranges ranges = {
      {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return ranges;
}

// Recursive descent over a regular expression. A failed step stores its error.
class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : rest_(pattern), pattern_(pattern) {}

  Result<std::string> Parse() {
    const std::optional<std::string> text = Choice();
    if (!error_.has_value() && !rest_.empty()) Fail("a ')' that closes nothing");
    if (error_.has_value()) return *error_;
    return *text;
  }

 private:
  std::nullopt_t Fail(const std::string& what) {
    if (!error_.has_value()) {
      error_ = InvalidInput(
          fmt::format("the pattern '{}' has {}, which is not supported", pattern_, what));
    }
    return std::nullopt;
  }

  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::optional<std::string> Choice() {
    std::string text;
    do {
      const std::optional<std::string> sequence = Sequence();
      if (!sequence.has_value()) return std::nullopt;
      text += (text.empty() ? "" : " | ") + *sequence;
    } while (Take("|"));
    return fmt::format("({})", text);
  }

  std::optional<std::string> Sequence() {
    // A pattern is searched for: outside of groups anything may come before and after it.
    std::string text = depth_ > 0 || Take("^") ? "" : "char* ";
    bool anchored = depth_ > 0;
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      if (depth_ == 0 && (rest_ == "$" || rest_.starts_with("$|"))) {
        anchored = Take("$");
        continue;
      }
      std::optional<std::string> item = Item();
      if (!item.has_value()) return std::nullopt;
      text += *item + " ";
    }
    text += anchored ? "\"\"" : "char*";
    return text;
  }

  std::optional<std::string> Item() {
    std::optional<std::string> atom = Atom();
    if (!atom.has_value()) return std::nullopt;
    std::string count;
    if (Take("*")) {
      count = "*";
    } else if (Take("+")) {
      count = "+";
    } else if (Take("?")) {
      count = "?";
    } else if (rest_.starts_with("{")) {
      const std::size_t end = rest_.find('}');
      if (end == rest_.npos || !ValidBounds(rest_.substr(1, end - 1))) {
        return Fail("a repetition other than {m}, {m,} and {m,n}");
      }
      count = rest_.substr(0, end + 1);
      rest_.remove_prefix(end + 1);
    }
    // How eagerly it repeats does not change what matches.
    if (!count.empty()) (void)Take("?");
    return *atom + count;
  }

  static bool ValidBounds(std::string_view bounds) {
    int min = 0;
    int max = 0;
    const char* const end = bounds.data() + bounds.size();
    auto read = std::from_chars(bounds.data(), end, min);
    if (read.ec != std::errc() || min > kMaxRepetitions) return false;
    if (read.ptr == end) return true;
    if (*read.ptr != ',') return false;
    if (read.ptr + 1 == end) return true;
    read = std::from_chars(read.ptr + 1, end, max);
    return read.ec == std::errc() && read.ptr == end && min <= max && max <= kMaxRepetitions;
  }

  std::optional<std::string> Atom() {
    if (Take("(")) return GroupAtom();
    if (Take("[")) return ClassAtom();
    if (Take(".")) {
      return Characters(ComplementRanges({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    }
    for (const char* const special : {"^", "$", "*", "+", "?", "{", "}", "]"}) {
      if (rest_.starts_with(special)) return Fail(fmt::format("a '{}' in this place", special));
    }
    Ranges ranges;
    return Character(&ranges) ? Characters(NormalizeRanges(std::move(ranges))) : std::nullopt;
  }

  std::optional<std::string> GroupAtom() {
    if (!Take("?:") && rest_.starts_with("?")) {
      return Fail(fmt::format("the group '({}'", rest_.substr(0, 3)));
    }
    if (++depth_ > kMaxGroups) return Fail("groups nested too deep");
    const std::optional<std::string> choice = Choice();
    --depth_;
    if (choice.has_value() && !Take(")")) return Fail("a '(' that is never closed");
    return choice;
  }

  std::optional<std::string> ClassAtom() {
    const bool negated = Take("^");
    Ranges ranges;
    while (!Take("]")) {
      if (rest_.empty()) return Fail("a '[' that is never closed");
      const std::size_t before = ranges.size();
      if (!Character(&ranges)) return std::nullopt;
      const bool single = ranges.size() == before + 1 && ranges.back().first == ranges.back().last;
      if (!single || !rest_.starts_with("-") || rest_.starts_with("-]")) continue;
      rest_.remove_prefix(1);
      Ranges last;
      if (!Character(&last)) return std::nullopt;
      if (last.size() != 1 || last[0].last < ranges.back().first) {
        return Fail("a range of characters that ends before it begins");
      }
      ranges.back().last = last[0].last;
    }
    ranges = NormalizeRanges(std::move(ranges));
    return Characters(negated ? ComplementRanges(ranges) : ranges);
  }

  std::optional<std::string> Characters(const Ranges& ranges) {
    const std::optional<std::string> text = JsonCharacter(ranges);
    if (!text.has_value()) return Fail("a class of characters that no JSON text needs");
    return text;
  }

  // Appends one character or one of the classes \d, \w, \s and their complements.
  bool Character(Ranges* ranges) {
    std::uint32_t code = 0;
    if (!Take("\\")) {
      if (!TakeUtf8(&rest_, &code)) return Fail("invalid UTF-8"), false;
      ranges->push_back({code, code});
      return true;
    }
    if (rest_.empty()) return Fail("a '\\' at its end"), false;
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    const auto append = [&](const Ranges& known, bool complement) {
      const Ranges added = complement ? ComplementRanges(known) : known;
      ranges->insert(ranges->end(), added.begin(), added.end());
      return true;
    };
    if (letter == 'd' || letter == 'D') return append(DigitClass(), letter == 'D');
    if (letter == 'w' || letter == 'W') return append(WordClass(), letter == 'W');
    if (letter == 's' || letter == 'S') return append(SpaceClass(), letter == 'S');
    constexpr std::string_view kLetters = "tnrfv";
    constexpr std::string_view kValues = "\t\n\r\f\v";
    if (const std::size_t at = kLetters.find(letter); at != kLetters.npos) {
      code = static_cast<unsigned char>(kValues[at]);
    } else if (letter == 'x' || letter == 'u') {
      if (!Hex(letter == 'x' ? 2 : 4, &code)) return Fail("a malformed \\x or \\u escape"), false;
    } else if (std::string_view("^$\\.*+?()[]{}|/-\"'#&,:;<>=@!%~` ").find(letter) !=
               std::string_view::npos) {
      code = static_cast<unsigned char>(letter);
    } else {
      return Fail(fmt::format("the escape '\\{}'", letter)), false;
    }
    ranges->push_back({code, code});
    return true;
  }

  bool Hex(int digits, std::uint32_t* code) {
    const std::string_view hex = rest_.substr(0, digits);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), *code, 16);
    if (error != std::errc() || end != hex.data() + digits || !IsScalarValue(*code)) return false;
    rest_.remove_prefix(digits);
    return true;
  }

  std::string_view rest_;
  std::string_view pattern_;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::string> JsonStringPattern(std::string_view pattern) {
  return PatternParser(pattern).Parse();
}

}  // namespace foretoken
