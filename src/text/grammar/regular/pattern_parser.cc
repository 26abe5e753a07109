#include <fmt/core.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/utf8.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/grammar.h"
#include "text/grammar/regular/pattern.h"

namespace foretoken {
namespace {

// The properties that ECMA-262 lists; ICU knows more. What ECMA-262 has besides is made of others
// below.
constexpr UProperty kBinaryProperties[] = {
    UCHAR_ALPHABETIC,
    UCHAR_ASCII_HEX_DIGIT,
    UCHAR_BIDI_CONTROL,
    UCHAR_BIDI_MIRRORED,
    UCHAR_CASE_IGNORABLE,
    UCHAR_CASED,
    UCHAR_CHANGES_WHEN_CASEFOLDED,
    UCHAR_CHANGES_WHEN_CASEMAPPED,
    UCHAR_CHANGES_WHEN_LOWERCASED,
    UCHAR_CHANGES_WHEN_NFKC_CASEFOLDED,
    UCHAR_CHANGES_WHEN_TITLECASED,
    UCHAR_CHANGES_WHEN_UPPERCASED,
    UCHAR_DASH,
    UCHAR_DEFAULT_IGNORABLE_CODE_POINT,
    UCHAR_DEPRECATED,
    UCHAR_DIACRITIC,
    UCHAR_EMOJI,
    UCHAR_EMOJI_COMPONENT,
    UCHAR_EMOJI_MODIFIER,
    UCHAR_EMOJI_MODIFIER_BASE,
    UCHAR_EMOJI_PRESENTATION,
    UCHAR_EXTENDED_PICTOGRAPHIC,
    UCHAR_EXTENDER,
    UCHAR_GRAPHEME_BASE,
    UCHAR_GRAPHEME_EXTEND,
    UCHAR_HEX_DIGIT,
    UCHAR_IDS_BINARY_OPERATOR,
    UCHAR_IDS_TRINARY_OPERATOR,
    UCHAR_ID_CONTINUE,
    UCHAR_ID_START,
    UCHAR_IDEOGRAPHIC,
    UCHAR_JOIN_CONTROL,
    UCHAR_LOGICAL_ORDER_EXCEPTION,
    UCHAR_LOWERCASE,
    UCHAR_MATH,
    UCHAR_NONCHARACTER_CODE_POINT,
    UCHAR_PATTERN_SYNTAX,
    UCHAR_PATTERN_WHITE_SPACE,
    UCHAR_QUOTATION_MARK,
    UCHAR_RADICAL,
    UCHAR_REGIONAL_INDICATOR,
    UCHAR_S_TERM,
    UCHAR_SOFT_DOTTED,
    UCHAR_TERMINAL_PUNCTUATION,
    UCHAR_UNIFIED_IDEOGRAPH,
    UCHAR_UPPERCASE,
    UCHAR_VARIATION_SELECTOR,
    UCHAR_WHITE_SPACE,
    UCHAR_XID_CONTINUE,
    UCHAR_XID_START,
};

// Whether `name` is one of those that `name_of` gives, exactly: ICU finds names in other spellings.
// The short name may be missing.
template <typename NameOf>
bool IsOneOf(std::string_view name, NameOf name_of) {
  for (int i = U_SHORT_PROPERTY_NAME;; ++i) {
    const char* const known = name_of(static_cast<UPropertyNameChoice>(i));
    if (known != nullptr && name == known) return true;
    if (known == nullptr && i != U_SHORT_PROPERTY_NAME) return false;
  }
}

// The value of `property` that is called `name`; nothing where none is.
std::optional<int> ValueOf(UProperty property, const std::string& name) {
  const int value = u_getPropertyValueEnum(property, name.c_str());
  const bool exact = IsOneOf(name, [&](UPropertyNameChoice choice) {
    return u_getPropertyValueName(property, value, choice);
  });
  return exact ? std::optional(value) : std::nullopt;
}

// Nothing where no character has the value: ICU knows scripts that Unicode does not have.
std::optional<std::vector<CodeRange>> CharactersWith(UProperty property, std::optional<int> value) {
  if (!value.has_value()) return std::nullopt;
  UErrorCode status = U_ZERO_ERROR;
  icu::UnicodeSet set;
  set.applyIntPropertyValue(property, *value, status);
  if (U_FAILURE(status) || set.isEmpty()) return std::nullopt;
  std::vector<CodeRange> ranges;
  for (int i = 0; i < set.getRangeCount(); ++i) {
    ranges.push_back({static_cast<std::uint32_t>(set.getRangeStart(i)),
                      static_cast<std::uint32_t>(set.getRangeEnd(i))});
  }
  return NormalizeRanges(std::move(ranges));
}

// The characters, ascending and disjoint, that `\p{name}` stands for in a regular expression of
// ECMA-262 with flag u: a general category (`Lu`, `Letter`, `gc=Lu`), a script (`Script=Greek`,
// `scx=Grek`) or a property that a character has or has not (`Alphabetic`, `Emoji`). Names are
// exact, as the standard lists them. Nothing for other names.
std::optional<std::vector<CodeRange>> UnicodeProperty(std::string_view name) {
  const std::size_t equals = name.find('=');
  const std::string value(name.substr(equals == name.npos ? 0 : equals + 1));
  const std::string_view property = name.substr(0, equals == name.npos ? 0 : equals);
  const auto with_value = [&](UProperty known) {
    return CharactersWith(known, ValueOf(known, value));
  };
  if (property == "Script" || property == "sc") return with_value(UCHAR_SCRIPT);
  if (property == "Script_Extensions" || property == "scx") {
    return CharactersWith(UCHAR_SCRIPT_EXTENSIONS, ValueOf(UCHAR_SCRIPT, value));
  }
  if (property == "General_Category" || property == "gc") {
    return with_value(UCHAR_GENERAL_CATEGORY_MASK);
  }
  if (equals != name.npos) return std::nullopt;
  if (value == "Any") return ComplementRanges({});
  if (value == "ASCII") return {{{0, 0x7F}}};
  if (value == "Assigned") {
    return CharactersWith(UCHAR_GENERAL_CATEGORY_MASK, ~static_cast<int>(U_GC_CN_MASK));
  }
  for (const UProperty binary : kBinaryProperties) {
    const bool exact = IsOneOf(
        value, [&](UPropertyNameChoice choice) { return u_getPropertyName(binary, choice); });
    if (exact) return CharactersWith(binary, 1);
  }
  return with_value(UCHAR_GENERAL_CATEGORY_MASK);
}

constexpr int kMaxGroups = 30;  // One within the other.
// The most ranges of all properties that a pattern names; letters are 659.
constexpr std::size_t kMaxPropertyRanges = 100'000;

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

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Recursive descent over a regular expression. A failed step stores its error.
class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : rest_(pattern), pattern_(pattern) {}

  Result<Pattern> Parse() {
    std::optional<Pattern> pattern = Choice(/*at_begin=*/false);
    if (!error_.has_value() && !rest_.empty()) Fail("a ')' that closes nothing");
    if (error_.has_value()) return *error_;
    return *std::move(pattern);
  }

 private:
  std::nullopt_t Fail(const std::string& what) {
    return FailAs(fmt::format("has {}, which is not supported", what));
  }

  std::nullopt_t FailAs(const std::string& what) {
    if (!error_.has_value()) {
      error_ = Invalid("the pattern '{}' {}", Shortened(pattern_), what);
    }
    return std::nullopt;
  }

  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  // `at_begin`: the text is known to begin here.
  std::optional<Pattern> Choice(bool at_begin) {
    Pattern choice{.kind = Pattern::Kind::kChoice};
    do {
      std::optional<Pattern> sequence = Sequence(at_begin);
      if (!sequence.has_value()) return std::nullopt;
      choice.parts.push_back(*std::move(sequence));
    } while (Take("|"));
    if (choice.parts.size() > 1) return choice;
    return std::move(choice.parts[0]);
  }

  std::optional<Pattern> Sequence(bool at_begin) {
    Pattern sequence;
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      if (at_begin && Take("^")) continue;
      std::optional<Pattern> item = Item(at_begin);
      if (!item.has_value()) return std::nullopt;
      const bool looks =
          item->kind == Pattern::Kind::kAhead || item->kind == Pattern::Kind::kNotAhead;
      at_begin = item->kind == Pattern::Kind::kBegin || (at_begin && looks);
      sequence.parts.push_back(*std::move(item));
    }
    return sequence;
  }

  std::optional<Pattern> Item(bool at_begin) {
    // A look-ahead sees what comes after it only, so a beginning behind it would never be found.
    if (!looked_ahead_ && Take("^")) return Pattern{.kind = Pattern::Kind::kBegin};
    if (Take("$")) return Pattern{.kind = Pattern::Kind::kEnd};
    std::optional<Pattern> atom = Atom(at_begin);
    if (!atom.has_value()) return std::nullopt;
    Pattern repeat{.kind = Pattern::Kind::kRepeat, .max = Expression::kUnbounded};
    if (Take("?")) {
      repeat.max = 1;
    } else if (Take("+")) {
      repeat.min = 1;
    } else if (rest_.starts_with("{")) {
      if (!TakeBounds(&repeat)) return Fail("a repetition other than {m}, {m,} and {m,n}");
    } else if (!Take("*")) {
      return atom;
    }
    (void)Take("?");  // How eagerly it repeats does not change what matches.
    repeat.parts.push_back(*std::move(atom));
    return repeat;
  }

  bool TakeBounds(Pattern* repeat) {
    const std::size_t size = rest_.find('}');
    if (size == rest_.npos) return false;
    const char* const end = rest_.data() + size;
    auto read = std::from_chars(rest_.data() + 1, end, repeat->min);
    if (read.ec != std::errc() || repeat->min > kMaxRepetitions) return false;
    if (read.ptr == end) {
      repeat->max = repeat->min;
    } else if (*read.ptr != ',') {
      return false;
    } else if (read.ptr + 1 != end) {
      read = std::from_chars(read.ptr + 1, end, repeat->max);
      if (read.ec != std::errc() || read.ptr != end || repeat->max < repeat->min) return false;
    }
    rest_.remove_prefix(size + 1);
    return repeat->min >= 0 && repeat->max <= kMaxRepetitions;
  }

  std::optional<Pattern> Atom(bool at_begin) {
    if (Take("(")) return GroupAtom(at_begin);
    if (Take("[")) return ClassAtom();
    if (Take(".")) {
      return Characters(ComplementRanges({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    }
    for (const char* const special : {"^", "*", "+", "?", "{", "}", "]"}) {
      if (rest_.starts_with(special)) return Fail(fmt::format("a '{}' in this place", special));
    }
    std::optional<Element> element = TakeElement();
    if (!element.has_value()) return std::nullopt;
    return Characters(NormalizeRanges(std::move(element->ranges)));
  }

  std::optional<Pattern> GroupAtom(bool at_begin) {
    const bool ahead = Take("?=");
    const bool not_ahead = !ahead && Take("?!");
    if (!Take("?:") && !ahead && !not_ahead && rest_.starts_with("?")) {
      return Fail(
          fmt::format("the group '({}'", rest_.substr(0, ValidUtf8Prefix(rest_.substr(0, 3)))));
    }
    if (++depth_ > kMaxGroups) return Fail("groups nested too deep");
    looked_ahead_ = looked_ahead_ || ahead || not_ahead;
    std::optional<Pattern> choice = Choice(at_begin && (ahead || not_ahead));
    --depth_;
    if (choice.has_value() && !Take(")")) return Fail("a '(' that is never closed");
    if (!choice.has_value() || (!ahead && !not_ahead)) return choice;
    Pattern look{.kind = ahead ? Pattern::Kind::kAhead : Pattern::Kind::kNotAhead};
    look.parts.push_back(*std::move(choice));
    return look;
  }

  std::optional<Pattern> ClassAtom() {
    const bool negated = Take("^");
    Ranges ranges;
    const auto append = [&](const Ranges& added) {
      ranges.insert(ranges.end(), added.begin(), added.end());
    };
    while (!Take("]")) {
      if (rest_.empty()) return Fail("a '[' that is never closed");
      std::optional<Element> first = TakeElement();
      if (!first.has_value()) return std::nullopt;
      append(first->ranges);
      if (!first->single || !rest_.starts_with("-") || rest_.starts_with("-]")) continue;
      rest_.remove_prefix(1);
      const std::optional<Element> last = TakeElement();
      if (!last.has_value()) return std::nullopt;
      if (!last->single) {  // As where a class comes first, the hyphen is one.
        append({{'-', '-'}});
        append(last->ranges);
        continue;
      }
      ranges.back().last = last->ranges[0].last;
      if (ranges.back().last < ranges.back().first) {
        return Fail("a range of characters that ends before it begins");
      }
    }
    ranges = NormalizeRanges(std::move(ranges));
    return Characters(negated ? ComplementRanges(ranges) : ranges);
  }

  static Pattern Characters(Ranges ranges) {
    return {.kind = Pattern::Kind::kClass, .ranges = std::move(ranges)};
  }

  // What stands for one character of a text: itself, or an escape for one or for a class.
  struct Element {
    Ranges ranges;
    bool single = false;  // One range of one character, not a class that has just one.
  };

  static Element SingleOf(std::uint32_t code) { return {{{code, code}}, true}; }
  static Element ClassOf(const Ranges& ranges, bool complement) {
    return {complement ? ComplementRanges(ranges) : ranges};
  }

  std::optional<Element> TakeElement() {
    std::uint32_t code = 0;
    if (!Take("\\")) {
      if (!TakeUtf8(&rest_, &code)) return Fail("invalid UTF-8");
      return SingleOf(code);
    }
    if (rest_.empty()) return Fail("a '\\' at its end");
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    if (letter == 'd' || letter == 'D') return ClassOf(DigitClass(), letter == 'D');
    if (letter == 'w' || letter == 'W') return ClassOf(WordClass(), letter == 'W');
    if (letter == 's' || letter == 'S') return ClassOf(SpaceClass(), letter == 'S');
    if (letter == 'p' || letter == 'P') return TakeProperty(letter == 'P');
    constexpr std::string_view kLetters = "tnrfv";
    constexpr std::string_view kValues = "\t\n\r\f\v";
    if (const std::size_t at = kLetters.find(letter); at != kLetters.npos) {
      return SingleOf(static_cast<unsigned char>(kValues[at]));
    }
    if (letter == 'x' || letter == 'u') {
      const bool read = letter == 'x' ? Hex(2, &code) : CodePoint(&code);
      if (!read || !IsScalarValue(code)) return Fail("a malformed \\x or \\u escape");
      return SingleOf(code);
    }
    if (letter == 'c' && !rest_.empty() && IsAsciiLetter(rest_.front())) {
      code = static_cast<unsigned char>(rest_.front()) % 32;
      rest_.remove_prefix(1);
      return SingleOf(code);
    }
    constexpr std::string_view kSigns = "^$\\.*+?()[]{}|/-\"'#&,:;<>=@!%~` ";
    if (kSigns.find(letter) == kSigns.npos) return Fail(fmt::format("the escape '\\{}'", letter));
    return SingleOf(static_cast<unsigned char>(letter));
  }

  // Behind \p or \P.
  std::optional<Element> TakeProperty(bool complement) {
    const std::size_t size = rest_.find('}');
    if (!rest_.starts_with("{") || size == rest_.npos) {
      return Fail("a \\p or \\P without a name in braces");
    }
    const std::string_view name = rest_.substr(1, size - 1);
    const std::optional<Ranges> ranges = UnicodeProperty(name);
    if (!ranges.has_value()) {
      return FailAs(fmt::format(
          "asks for the Unicode property '{}', which is not known: names are exact, like {}",
          Shortened(name), "\\p{Lu}, \\p{Letter}, \\p{Script=Greek} and \\p{Emoji}"));
    }
    property_ranges_ += ranges->size();
    if (property_ranges_ > kMaxPropertyRanges) {
      return FailAs(fmt::format(
          "asks for Unicode properties too often: for more than {} ranges of characters",
          kMaxPropertyRanges));
    }
    rest_.remove_prefix(size + 1);
    return ClassOf(*ranges, complement);
  }

  // What comes behind \u: four digits, two such escapes that are surrogates, or digits in braces.
  bool CodePoint(std::uint32_t* code) {
    if (Take("{")) {
      const std::size_t digits = rest_.find('}');
      return digits != rest_.npos && Hex(digits, code) && Take("}");
    }
    if (!Hex(4, code)) return false;
    if (*code >> 10 != 0xD800 >> 10) return true;
    std::uint32_t low = 0;
    if (!Take("\\u") || !Hex(4, &low) || low >> 10 != 0xDC00 >> 10) return false;
    *code = 0x10000 + ((*code & 0x3FF) << 10 | (low & 0x3FF));
    return true;
  }

  bool Hex(std::size_t digits, std::uint32_t* code) {
    const std::string_view hex = rest_.substr(0, digits);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), *code, 16);
    if (error != std::errc() || end != hex.data() + digits) return false;
    rest_.remove_prefix(digits);
    return true;
  }

  std::string_view rest_;
  std::string_view pattern_;
  int depth_ = 0;
  std::size_t property_ranges_ = 0;
  bool looked_ahead_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<Pattern> ParsePattern(std::string_view text) { return PatternParser(text).Parse(); }

}  // namespace foretoken
