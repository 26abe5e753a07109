#include <fmt/core.h>

#include <charconv>
#include <map>
#include <optional>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/grammar.h"

namespace foretoken {
namespace {

// Parentheses within parentheses; bounds the parser's own recursion and that of its users.
constexpr int kMaxParentheses = 100;
constexpr int kMaxChained = 4;  // Repetitions of a repetition, as in (x*)* without parentheses.
constexpr std::string_view kRootName = "root";
constexpr std::string_view kReasoning = "@reasoning";

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

Expression BytesLiteral(std::string bytes) {
  return {.kind = Expression::Kind::kLiteral, .literal = std::move(bytes)};
}

// What a failed step returns.
struct Failure {
  operator bool() const { return false; }                              // NOLINT
  operator std::optional<Expression>() const { return std::nullopt; }  // NOLINT
};

// Recursive descent over the text. A failed step stores its error.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Grammar> Parse() {
    SkipBlanks();
    while (at_ < text_.size()) {
      if (!(Take(kReasoning) ? ParseReasoning() : ParseRule())) return *error_;
      SkipBlanks();
    }
    for (const auto& [name, entry] : names_) {
      if (entry.defined) continue;
      FailAt(entry.mentioned, fmt::format("the rule '{}' is used but not defined", name));
      return *error_;
    }
    const auto root = names_.find(kRootName);
    if (root == names_.end()) {
      return InvalidInput("the grammar has no rule 'root', with which matching begins");
    }
    grammar_.root = root->second.rule;
    return std::move(grammar_);
  }

 private:
  struct Name {
    int rule = 0;
    bool defined = false;
    std::size_t mentioned = 0;
  };

  Failure FailAt(std::size_t offset, const std::string& what) {
    int line = 1;
    int column = 1;
    for (const char c : text_.substr(0, offset)) {
      const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
      column = c == '\n' ? 1 : column + (continues ? 0 : 1);
      line += c == '\n' ? 1 : 0;
    }
    error_ = Invalid("grammar, line {}, column {}: {}", line, column, what);
    return {};
  }
  Failure Fail(const std::string& what) { return FailAt(at_, what); }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at_;
      } else {
        return;
      }
    }
  }

  // A rule ends where the next one begins, so lines may be broken anywhere.
  bool AtDefinition() {
    const std::size_t begin = at_;
    if (text_.substr(at_).starts_with(kReasoning)) return true;
    (void)TakeName();
    SkipBlanks();
    const bool defines = text_.substr(at_).starts_with("::=");
    at_ = begin;
    return defines;
  }

  std::string_view TakeName() {
    const std::size_t begin = at_;
    while (IsNameCharacter(Peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Name& Mention(std::string_view name, std::size_t offset) {
    const auto [entry, added] = names_.try_emplace(std::string(name));
    if (added) {
      entry->second = {.rule = Int(grammar_.rules.size()), .mentioned = offset};
      grammar_.rules.push_back({.name = std::string(name), .body = {}});
    }
    return entry->second;
  }

  bool ParseRule() {
    const std::size_t begin = at_;
    const std::string_view name = TakeName();
    if (name.empty()) return Fail("a rule like 'name ::= ...' should begin here");
    SkipBlanks();
    if (!Take("::=")) return Fail(fmt::format("'::=' should follow the rule name '{}'", name));
    Name& entry = Mention(name, begin);
    if (entry.defined) return FailAt(begin, fmt::format("the rule '{}' is defined twice", name));
    entry.defined = true;
    const int rule = entry.rule;
    std::optional<Expression> body = ParseChoice();
    if (!body.has_value()) return false;
    if (at_ < text_.size() && !AtDefinition()) {
      return Fail(Peek() == ')' ? "this ')' closes nothing"
                                : fmt::format("'{}' does not begin anything known", Character()));
    }
    grammar_.rules[rule].body = std::move(*body);
    return true;
  }

  // @reasoning TOKENS [begun] "open" "close" ["message"], behind its first word.
  bool ParseReasoning() {
    const std::size_t begin = at_ - kReasoning.size();
    if (grammar_.reasoning.has_value()) return FailAt(begin, "'@reasoning' stands here twice");
    ReasoningLimit limit;
    SkipBlanks();
    if (!ParseNumber(ReasoningLimit::kMaxTokens, "'@reasoning'", &limit.tokens)) {
      return error_.has_value()
                 ? Failure()
                 : Fail(
                       "'@reasoning' needs a number of tokens and the marks around thoughts, as "
                       "in @reasoning 100 \"<think>\" \"</think>\"");
    }
    SkipBlanks();
    limit.begun = Take("begun");
    std::string* const texts[] = {&limit.open, &limit.close, &limit.message};
    for (std::string* text : texts) {
      SkipBlanks();
      const std::size_t at = at_;
      if (!Take("\"")) break;
      const std::optional<Expression> literal = ParseLiteral(at);
      if (!literal.has_value()) return false;
      *text = literal->literal;
    }
    if (limit.open.empty() || limit.close.empty()) {
      return FailAt(begin,
                    "'@reasoning' needs the two marks around thoughts, neither of them empty");
    }
    grammar_.reasoning = std::move(limit);
    return true;
  }

  // The character at the current place, for messages.
  std::string Character() const {
    std::string_view rest = text_.substr(at_);
    const std::size_t size = rest.size();
    std::uint32_t code = 0;
    return TakeUtf8(&rest, &code) ? std::string(text_.substr(at_, size - rest.size()))
                                  : fmt::format("\\x{:02X}", static_cast<unsigned char>(Peek()));
  }

  std::optional<Expression> ParseChoice() {
    Expression choice{.kind = Expression::Kind::kChoice};
    do {
      std::optional<Expression> sequence = ParseSequence();
      if (!sequence.has_value()) return std::nullopt;
      choice.parts.push_back(std::move(*sequence));
    } while (Take("|"));
    if (choice.parts.size() == 1) return std::move(choice.parts.front());
    return choice;
  }

  std::optional<Expression> ParseSequence() {
    Expression sequence{.kind = Expression::Kind::kSequence};
    for (SkipBlanks(); at_ < text_.size() && Peek() != '|' && Peek() != ')'; SkipBlanks()) {
      if (IsNameCharacter(Peek()) && AtDefinition()) break;
      std::optional<Expression> item = ParseItem();
      if (!item.has_value()) {
        if (error_.has_value()) return std::nullopt;
        break;  // The caller says what may stand here.
      }
      sequence.parts.push_back(std::move(*item));
    }
    if (sequence.parts.empty()) return BytesLiteral("");
    if (sequence.parts.size() == 1) return std::move(sequence.parts.front());
    return sequence;
  }

  // One literal, class, rule or group with its repetitions; nothing, without an error, where none
  // begins.
  std::optional<Expression> ParseItem() {
    std::optional<Expression> item;
    const std::size_t begin = at_;
    if (Take("\"")) {
      item = ParseLiteral(begin);
    } else if (Take("[")) {
      item = ParseClass(begin);
    } else if (Take(".")) {
      item = Expression{.kind = Expression::Kind::kClass, .ranges = ComplementRanges({})};
    } else if (Take("(")) {
      if (++depth_ > kMaxParentheses) {
        return FailAt(begin,
                      fmt::format("parentheses are nested more than {} deep", kMaxParentheses));
      }
      item = ParseChoice();
      --depth_;
      if (item.has_value() && !Take(")")) {
        return at_ < text_.size()
                   ? Fail(fmt::format("'{}' does not begin anything known", Character()))
                   : FailAt(begin, "this '(' is never closed");
      }
    } else if (Take("@unique")) {
      SkipBlanks();
      if (!Take(R"("[")")) {
        return FailAt(begin,
                      "'@unique' stands before the \"[\" of a JSON list whose items all differ");
      }
      item = Expression{.kind = Expression::Kind::kBeginUnique};
    } else if (IsNameCharacter(Peek())) {
      item = Expression{.kind = Expression::Kind::kRule};
      item->rule = Mention(TakeName(), begin).rule;
    }
    for (int chained = 0; item.has_value() && ParseRepetition(&item); ++chained) {
      if (chained < kMaxChained) continue;
      return Fail(fmt::format("more than {} repetitions follow one another", kMaxChained));
    }
    return item;
  }

  // Wraps `item` where a repetition follows; false where none does, or with an error, which clears
  // it.
  bool ParseRepetition(std::optional<Expression>* item) {
    SkipBlanks();
    int min = 0;
    int max = Expression::kUnbounded;
    if (Take("?")) {
      max = 1;
    } else if (Take("+")) {
      min = 1;
    } else if (Take("{")) {
      if (!ParseBounds(&min, &max)) {
        item->reset();
        return false;
      }
    } else if (!Take("*")) {
      return false;
    }
    Expression repeat{.kind = Expression::Kind::kRepeat, .min = min, .max = max};
    repeat.parts.push_back(std::move(**item));
    *item = std::move(repeat);
    return true;
  }

  bool ParseBounds(int* min, int* max) {
    const std::size_t begin = at_ - 1;
    SkipBlanks();
    const bool has_min = ParseNumber(min);
    SkipBlanks();
    bool has_max = has_min;
    *max = *min;
    if (Take(",")) {
      *max = Expression::kUnbounded;
      SkipBlanks();
      has_max = ParseNumber(max);
      SkipBlanks();
    }
    if (error_.has_value()) return false;
    if (!Take("}") || (!has_min && !has_max)) {
      return FailAt(begin, "a repetition is written {m}, {m,}, {,n} or {m,n}");
    }
    if (*max != Expression::kUnbounded && *max < *min) {
      return FailAt(begin,
                    fmt::format("the repetition {{{},{}}} ends before it begins", *min, *max));
    }
    return true;
  }

  bool ParseNumber(int* number) { return ParseNumber(kMaxRepetitions, "a repetition", number); }

  bool ParseNumber(int most, std::string_view what, int* number) {
    const std::size_t begin = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    if (at_ == begin) return false;
    const auto [end, error] = std::from_chars(text_.data() + begin, text_.data() + at_, *number);
    if (error != std::errc() || *number > most) {
      return FailAt(begin, fmt::format("{} counts to {} at most", what, most));
    }
    return true;
  }

  std::optional<Expression> ParseLiteral(std::size_t begin) {
    std::string bytes;
    while (!Take("\"")) {
      std::uint32_t code = 0;
      if (Peek() == '\n' || at_ >= text_.size()) {
        return FailAt(begin, "this literal has no closing '\"' on its line");
      }
      if (!ParseCharacter(&code)) return std::nullopt;
      AppendUtf8(code, &bytes);
    }
    return BytesLiteral(std::move(bytes));
  }

  std::optional<Expression> ParseClass(std::size_t begin) {
    const bool negated = Take("^");
    std::vector<CodeRange> ranges;
    while (!Take("]")) {
      if (at_ >= text_.size()) return FailAt(begin, "this '[' is never closed");
      const std::size_t range_begin = at_;
      CodeRange range;
      if (!ParseCharacter(&range.first)) return std::nullopt;
      range.last = range.first;
      // A '-' before the closing bracket is itself.
      if (Peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        if (!ParseCharacter(&range.last)) return std::nullopt;
      }
      if (range.last < range.first) {
        return FailAt(range_begin, "this range of characters ends before it begins");
      }
      ranges.push_back(range);
    }
    ranges = NormalizeRanges(std::move(ranges));
    if (negated) ranges = ComplementRanges(ranges);
    if (ranges.empty()) return FailAt(begin, "this class of characters is empty");
    return Expression{.kind = Expression::Kind::kClass, .ranges = std::move(ranges)};
  }

  // A character of a literal or class, which may be escaped.
  bool ParseCharacter(std::uint32_t* code) {
    const std::size_t begin = at_;
    if (!Take("\\")) {
      std::string_view rest = text_.substr(at_);
      if (!TakeUtf8(&rest, code)) return Fail("the text is not valid UTF-8 here");
      at_ = text_.size() - rest.size();
      return true;
    }
    constexpr std::string_view kNames = "nrt\"\\[]^-/'";
    constexpr std::string_view kValues = "\n\r\t\"\\[]^-/'";
    const std::size_t known = at_ < text_.size() ? kNames.find(text_[at_]) : kNames.npos;
    if (known != kNames.npos) {
      ++at_;
      *code = static_cast<unsigned char>(kValues[known]);
      return true;
    }
    for (const auto& [letter, digits] : {std::pair{"x", 2}, {"u", 4}, {"U", 8}}) {
      if (Take(letter)) return ParseHex(begin, digits, code);
    }
    return FailAt(begin,
                  "this escape is not known; there are \\n \\r \\t \\\" \\\\ \\[ \\] \\^ \\- "
                  "\\xHH \\uHHHH and \\UHHHHHHHH");
  }

  bool ParseHex(std::size_t begin, int digits, std::uint32_t* code) {
    const std::string_view hex = text_.substr(at_, digits);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), *code, 16);
    if (error != std::errc() || end != hex.data() + digits || !IsScalarValue(*code)) {
      return FailAt(begin, fmt::format("this escape needs {} hexadecimal digits that name a "
                                       "Unicode character",
                                       digits));
    }
    at_ += digits;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Grammar grammar_;
  std::map<std::string, Name, std::less<>> names_;
  std::optional<Error> error_;
};

}  // namespace

Result<Grammar> ParseGrammar(std::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return Invalid("the grammar has {} bytes; at most {} are allowed", text.size(),
                   kMaxGrammarBytes);
  }
  return Parser(text).Parse();
}

std::string GrammarLiteral(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\x{:02X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace foretoken
