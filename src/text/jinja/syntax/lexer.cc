#include "text/jinja/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/text/utf8.h"
#include "text/jinja/letters.h"

namespace foretoken::jinja {
namespace {

/// Takes a number of `base` with up to `most` digits off the front of `rest`; how many there were.
std::size_t TakeNumber(std::string_view* rest, std::size_t most, int base, std::uint32_t* number) {
  const std::string_view digits = rest->substr(0, most);
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), *number, base);
  const std::size_t taken = result.ptr - digits.data();
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

// What a string literal stands for, given what is between its quotes: Python's escapes are
// replaced, and a backslash before anything else stays. False: `problem` says what is wrong.
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

using Kind = Lexeme::Kind;

/// Lines end with a line feed; one at the end of all is dropped.
std::string WithLineFeeds(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool before_feed = i + 1 < source.size() && source[i + 1] == '\n';
    if (source[i] != '\r') {
      text += source[i];
    } else if (!before_feed) {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(WithLineFeeds(source)), rest_(source_) {}

  Result<std::vector<Lexeme>> Run() {
    while (status_.ok() && at_ < rest_.size()) ReadData();
    if (!status_.ok()) return status_.error();
    Add(Kind::kEnd, "");
    return std::move(lexemes_);
  }

 private:
  void Fail(const std::string& what) {
    if (status_.ok()) status_ = Invalid("line {} of the template: {}", line_, what);
    at_ = rest_.size();
  }

  void Add(Kind kind, std::string text) { lexemes_.push_back({kind, std::move(text), line_}); }

  /// Goes on to `place`, counting lines.
  void MoveTo(std::size_t place) {
    line_ += static_cast<int>(std::count(rest_.begin() + at_, rest_.begin() + place, '\n'));
    at_ = place;
  }

  bool StartsWith(std::string_view text, std::size_t at) const {
    return rest_.substr(at).starts_with(text);
  }

  std::size_t SkipSpaces(std::size_t at) const {
    while (at < rest_.size()) {
      std::size_t length = 0;
      if (!IsSpace(CodeAt(rest_, at, &length))) break;
      at += length;
    }
    return at;
  }

  /// Where the next tag begins; the end of the template where none does.
  std::size_t FindTag() const {
    for (std::size_t brace = rest_.find('{', at_); brace < rest_.size() - 1;
         brace = rest_.find('{', brace + 1)) {
      if (std::string_view("{%#").find(rest_[brace + 1]) != std::string_view::npos) return brace;
    }
    return rest_.size();
  }

  /// Text up to the next tag, and the tag.
  void ReadData() {
    const std::size_t tag = FindTag();
    if (tag == rest_.size()) return AddData(tag, '+');
    const char kind = rest_[tag + 1];
    const char sign = tag + 2 < rest_.size() ? rest_[tag + 2] : ' ';
    const bool is_signed = sign == '-' || sign == '+';
    // What is printed stays behind the white space of its line.
    AddData(tag, is_signed ? sign : kind == '{' ? '+' : ' ');
    MoveTo(tag + (is_signed ? 3 : 2));
    if (kind == '#') return SkipComment();
    if (kind == '%' && ReadRaw()) return;
    Add(kind == '{' ? Kind::kPrintBegin : Kind::kBlockBegin, "");
    ReadTag(kind == '{' ? "}}" : "%}", kind == '{');
  }

  /// Adds the text up to `end`, where a tag begins: with '-' no white space stays before it, with
  /// '+' all, else none that begins its line.
  void AddData(std::size_t end, char effect) {
    std::size_t stop = end;
    const auto space_before = [&](std::size_t place) {
      std::size_t begin = place - 1;
      while (begin > at_ && (static_cast<unsigned char>(rest_[begin]) & 0xC0) == 0x80) --begin;
      std::size_t length = 0;
      return IsSpace(CodeAt(rest_, begin, &length)) ? begin : place;
    };
    if (effect == '-') {
      while (stop > at_ && space_before(stop) < stop) stop = space_before(stop);
    } else if (effect == ' ') {
      std::size_t begin = stop;
      while (begin > at_ && rest_[begin - 1] != '\n' && space_before(begin) < begin) {
        begin = space_before(begin);
      }
      const bool line_begins = begin > at_ ? rest_[begin - 1] == '\n' : line_starts_;
      if (line_begins) stop = begin;
    }
    if (stop > at_) Add(Kind::kData, std::string(rest_.substr(at_, stop - at_)));
    MoveTo(end);
  }

  /// Goes behind the end of a tag that may drop the line feed behind it, or all white space.
  void FinishTag(std::size_t end, char sign, bool trims) {
    std::size_t next = end;
    if (sign == '-') {
      next = SkipSpaces(end);
    } else if (trims && sign != '+' && StartsWith("\n", end)) {
      ++next;
    }
    line_starts_ = rest_[next - 1] == '\n';
    MoveTo(next);
  }

  void SkipComment() {
    const std::size_t close = rest_.find("#}", at_);
    if (close == std::string_view::npos) return Fail("a comment does not end; it ends with '#}'");
    const char sign = close > at_ ? rest_[close - 1] : ' ';
    FinishTag(close + 2, sign, true);
  }

  /// Where the tag `{% word %}` whose inside begins at `at` ends, with the sign before its end; 0
  /// where it is another tag.
  std::pair<std::size_t, char> MatchWord(std::size_t at, std::string_view word) const {
    at = SkipSpaces(at);
    if (!StartsWith(word, at)) return {0, ' '};
    at = SkipSpaces(at + word.size());
    const bool is_signed = StartsWith("-%}", at) || StartsWith("+%}", at);
    if (!is_signed && !StartsWith("%}", at)) return {0, ' '};
    return {at + (is_signed ? 3 : 2), is_signed ? rest_[at] : ' '};
  }

  /// Takes a raw block, whose inside is no template.
  bool ReadRaw() {
    const auto [begin, sign] = MatchWord(at_, "raw");
    if (begin == 0 || sign == '+') return false;
    FinishTag(begin, sign, false);
    for (std::size_t tag = rest_.find("{%", at_); tag != std::string_view::npos;
         tag = rest_.find("{%", tag + 1)) {
      const char before = tag + 2 < rest_.size() ? rest_[tag + 2] : ' ';
      const bool is_signed = before == '-' || before == '+';
      const auto [end, end_sign] = MatchWord(tag + (is_signed ? 3 : 2), "endraw");
      if (end == 0) continue;
      AddData(tag, is_signed ? before : ' ');
      FinishTag(end, end_sign, true);
      return true;
    }
    Fail("a raw block does not end; it ends with '{% endraw %}'");
    return true;
  }

  /// The words of a tag and its end, which does not count within brackets.
  void ReadTag(std::string_view end, bool prints) {
    const int line = line_;
    std::string closing;  // The closing brackets of those that are open.
    while (status_.ok()) {
      MoveTo(SkipSpaces(at_));
      if (at_ == rest_.size()) {
        line_ = line;
        return Fail(fmt::format("a tag does not end; it ends with '{}'", end));
      }
      const char sign = rest_[at_];
      const bool is_signed = sign == '-' || (sign == '+' && !prints);
      if (closing.empty() && StartsWith(end, at_ + (is_signed ? 1 : 0))) {
        Add(prints ? Kind::kPrintEnd : Kind::kBlockEnd, "");
        return FinishTag(at_ + end.size() + (is_signed ? 1 : 0), is_signed ? sign : ' ', !prints);
      }
      ReadWord(&closing);
    }
  }

  void ReadWord(std::string* closing) {
    const char c = rest_[at_];
    if (IsDigit(c)) return ReadNumber();
    if (c == '\'' || c == '"') return ReadString();
    std::size_t length = 0;
    const std::uint32_t code = CodeAt(rest_, at_, &length);
    if (c == '_' || IsLetter(code)) return ReadName();
    constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto found = std::ranges::find_if(
        kOperators, [this](std::string_view name) { return StartsWith(name, at_); });
    if (found == kOperators.end()) {
      return Fail(fmt::format("the character '{}' means nothing here", rest_.substr(at_, length)));
    }
    if (!Balance(c, closing)) return;
    Add(Kind::kOperator, std::string(*found));
    MoveTo(at_ + found->size());
  }

  bool Balance(char c, std::string* closing) {
    if (c == '(') closing->push_back(')');
    if (c == '[') closing->push_back(']');
    if (c == '{') closing->push_back('}');
    if (c != ')' && c != ']' && c != '}') return true;
    if (closing->empty() || closing->back() != c) {
      Fail(fmt::format("'{}' closes nothing", c));
      return false;
    }
    closing->pop_back();
    return true;
  }

  void ReadName() {
    std::size_t end = at_;
    while (end < rest_.size()) {
      std::size_t length = 0;
      const std::uint32_t code = CodeAt(rest_, end, &length);
      if (code != '_' && !IsLetter(code) && !IsDecimal(code)) break;
      end += length;
    }
    Add(Kind::kName, std::string(rest_.substr(at_, end - at_)));
    MoveTo(end);
  }

  std::size_t SkipDigits(std::size_t at) const {
    while (at < rest_.size() && (IsDigit(rest_[at]) || (rest_[at] == '_' && at + 1 < rest_.size() &&
                                                        IsDigit(rest_[at + 1])))) {
      ++at;
    }
    return at;
  }

  void ReadNumber() {
    std::size_t end = SkipDigits(at_);
    Kind kind = Kind::kInteger;
    // `a.0.1` is two items, no fraction.
    const bool item = !lexemes_.empty() && lexemes_.back().IsOperator(".");
    const bool based = end == at_ + 1 && rest_[at_] == '0' && end + 1 < rest_.size() &&
                       std::string_view("xXoObB").find(rest_[end]) != std::string_view::npos;
    if (based) {
      ++end;
      while (end < rest_.size() && std::isxdigit(static_cast<unsigned char>(rest_[end])) != 0)
        ++end;
    } else if (!item) {
      if (StartsWith(".", end) && end + 1 < rest_.size() && IsDigit(rest_[end + 1])) {
        end = SkipDigits(end + 1);
        kind = Kind::kFloat;
      }
      if (StartsWith("e", end) || StartsWith("E", end)) {
        std::size_t power = end + 1;
        if (StartsWith("+", power) || StartsWith("-", power)) ++power;
        if (power < rest_.size() && IsDigit(rest_[power])) {
          end = SkipDigits(power);
          kind = Kind::kFloat;
        }
      }
    }
    std::string digits(rest_.substr(at_, end - at_));
    std::erase(digits, '_');
    Add(kind, std::move(digits));
    MoveTo(end);
  }

  void ReadString() {
    const char quote = rest_[at_];
    std::size_t end = at_ + 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size())
      return Fail(fmt::format("a string does not end; it ends with {}", quote));
    std::string text;
    std::string problem;
    if (!Unescape(rest_.substr(at_ + 1, end - at_ - 1), &text, &problem)) return Fail(problem);
    Add(Kind::kString, std::move(text));
    MoveTo(end + 1);
  }

  const std::string source_;
  const std::string_view rest_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // What is next begins a line, as jinja2 counts it.
  std::vector<Lexeme> lexemes_;
  Status status_;
};

}  // namespace

Result<std::vector<Lexeme>> ReadLexemes(std::string_view source) {
  if (!IsUtf8(source)) return InvalidInput("the template is not valid UTF-8");
  return Lexer(source).Run();
}

}  // namespace foretoken::jinja
