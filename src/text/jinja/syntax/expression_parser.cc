#include "text/jinja/syntax/expression_parser.h"

#include <algorithm>
#include <memory>

#include "base/text/parse_number.h"
#include "base/text/utf8.h"
#include "text/jinja/builtins/builtins.h"

namespace foretoken::jinja {
namespace {

using Kind = Lexeme::Kind;

Value StringConstant(std::string_view text) {
  return Value(jinja::String(std::make_shared<StoredText>(Text(text), nullptr)));
}

}  // namespace

const Expression* ExpressionParser::Parse() {
  const int line = this->line();
  const Expression* expression = words_->Enter() ? ParseOr() : Nothing();
  while (words_->TakeName("if")) {
    const Expression* test = ParseOr();
    const Expression* otherwise = words_->TakeName("else") ? Parse() : nullptr;
    expression = Add(line, ConditionalExpression{test, expression, otherwise});
  }
  words_->Leave();
  return expression;
}

const Expression* ExpressionParser::ParseTuple(bool with_condition) {
  const int line = this->line();
  const auto parse = [&] { return with_condition ? Parse() : ParseOr(); };
  const Expression* first = parse();
  if (!words_->Peek().IsOperator(",")) return first;
  ListExpression tuple{true, {first}};
  while (words_->TakeOperator(",")) {
    const Lexeme& next = words_->Peek();
    if (next.kind == Kind::kPrintEnd || next.kind == Kind::kBlockEnd || next.IsOperator(")")) break;
    tuple.items.push_back(parse());
  }
  return Add(line, std::move(tuple));
}

const Expression* ExpressionParser::ParseOr() {
  const int line = this->line();
  const Expression* left = ParseAnd();
  while (words_->TakeName("or")) left = Add(line, LogicExpression{true, left, ParseAnd()});
  return left;
}

const Expression* ExpressionParser::ParseAnd() {
  const int line = this->line();
  const Expression* left = ParseNot();
  while (words_->TakeName("and")) left = Add(line, LogicExpression{false, left, ParseNot()});
  return left;
}

const Expression* ExpressionParser::ParseNot() {
  const int line = this->line();
  if (!words_->TakeName("not")) return ParseComparison();
  const Expression* operand = words_->Enter() ? ParseNot() : Nothing();
  words_->Leave();
  return Add(line, UnaryExpression{UnaryExpression::Kind::kNot, operand});
}

bool ExpressionParser::TakeComparison(Comparison* comparison) {
  constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kUnequal},
      {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
      {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual}};
  for (const auto& [name, meaning] : kOperators) {
    *comparison = meaning;
    if (words_->TakeOperator(name)) return true;
  }
  *comparison = Comparison::kIn;
  if (words_->TakeName("in")) return true;
  *comparison = Comparison::kNotIn;
  if (!words_->Peek().IsName("not") || !words_->Peek(1).IsName("in")) return false;
  words_->Take();
  words_->Take();
  return true;
}

const Expression* ExpressionParser::ParseComparison() {
  const int line = this->line();
  CompareExpression compare{ParseSum(), {}};
  Comparison comparison{};
  while (TakeComparison(&comparison)) compare.others.emplace_back(comparison, ParseSum());
  return compare.others.empty() ? compare.first : Add(line, std::move(compare));
}

const Expression* ExpressionParser::ParseSum() {
  const int line = this->line();
  const Expression* left = ParseConcat();
  while (true) {
    if (words_->TakeOperator("+")) {
      left = Add(line, BinaryExpression{Operator::kAdd, left, ParseConcat()});
    } else if (words_->TakeOperator("-")) {
      left = Add(line, BinaryExpression{Operator::kSubtract, left, ParseConcat()});
    } else {
      return left;
    }
  }
}

const Expression* ExpressionParser::ParseConcat() {
  const int line = this->line();
  ConcatExpression concat{{ParseProduct()}};
  while (words_->TakeOperator("~")) concat.parts.push_back(ParseProduct());
  return concat.parts.size() == 1 ? concat.parts[0] : Add(line, std::move(concat));
}

const Expression* ExpressionParser::ParseProduct() {
  const int line = this->line();
  constexpr std::pair<std::string_view, Operator> kOperators[] = {{"*", Operator::kMultiply},
                                                                  {"/", Operator::kDivide},
                                                                  {"//", Operator::kFloorDivide},
                                                                  {"%", Operator::kModulo}};
  const Expression* left = ParsePower();
  while (true) {
    const auto found = std::ranges::find_if(
        kOperators, [this](const auto& entry) { return words_->TakeOperator(entry.first); });
    if (found == std::end(kOperators)) return left;
    left = Add(line, BinaryExpression{found->second, left, ParsePower()});
  }
}

const Expression* ExpressionParser::ParsePower() {
  const int line = this->line();
  const Expression* left = ParseUnary(true);
  while (words_->TakeOperator("**")) {
    left = Add(line, BinaryExpression{Operator::kPower, left, ParseUnary(true)});
  }
  return left;
}

const Expression* ExpressionParser::ParseUnary(bool with_filters) {
  const int line = this->line();
  const Expression* expression = nullptr;
  if (!words_->Enter()) {
    expression = Nothing();
  } else if (words_->TakeOperator("-")) {
    expression = Add(line, UnaryExpression{UnaryExpression::Kind::kNegative, ParseUnary(false)});
  } else if (words_->TakeOperator("+")) {
    expression = Add(line, UnaryExpression{UnaryExpression::Kind::kPositive, ParseUnary(false)});
  } else {
    expression = ParsePrimary();
  }
  words_->Leave();
  expression = ParsePostfix(expression);
  return with_filters ? ParseFiltersAndTests(expression) : expression;
}

const Expression* ExpressionParser::ParsePrimary() {
  switch (words_->Peek().kind) {
    case Kind::kName:
      return ParseWord();
    case Kind::kString:
      return ParseStrings();
    case Kind::kInteger:
    case Kind::kFloat:
      return ParseNumber();
    default:
      break;
  }
  if (words_->Peek().IsOperator("(")) return ParseBrackets();
  if (words_->Peek().IsOperator("[")) return ParseList();
  if (words_->Peek().IsOperator("{")) return ParseDict();
  words_->FailAtWord("an expression");
  return Nothing();
}

const Expression* ExpressionParser::ParseWord() {
  const Lexeme word = words_->Take();
  const std::string& name = word.text;
  if (name == "true" || name == "True") return Add(word.line, ConstantExpression{Value(true)});
  if (name == "false" || name == "False") return Add(word.line, ConstantExpression{Value(false)});
  if (name == "none" || name == "None") return Add(word.line, ConstantExpression{Value(None{})});
  const Name known = tree_->NameOf(name);
  for (MacroCode* macro : macros_) {
    if (name == "caller") macro->caller = known;
    if (name == "varargs") macro->extra_positional = known;
    if (name == "kwargs") macro->extra_named = known;
  }
  return Add(word.line, NameExpression{known});
}

const Expression* ExpressionParser::ParseStrings() {
  const int line = this->line();
  std::string text;
  while (words_->Peek().kind == Kind::kString) text += words_->Take().text;
  return Add(line, ConstantExpression{StringConstant(text)});
}

const Expression* ExpressionParser::ParseNumber() {
  const Lexeme word = words_->Take();
  if (word.kind == Kind::kFloat) {
    double number = 0;
    if (foretoken::ParseNumber(std::string_view(word.text), &number))
      return Add(word.line, ConstantExpression{Value(number)});
  } else {
    const char mark = word.text.size() > 2 ? static_cast<char>(word.text[1] | 0x20) : '0';
    const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    const std::string digits = base == 10 ? word.text : word.text.substr(2);
    std::int64_t number = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    if (result.ec == std::errc() && result.ptr == digits.data() + digits.size()) {
      return Add(word.line, ConstantExpression{Value(number)});
    }
  }
  words_->Fail("'{}' is no number of up to 64 bits", Shortened(word.text, 40));
  return Nothing();
}

const Expression* ExpressionParser::ParseBrackets() {
  const int line = this->line();
  words_->Take();
  if (words_->TakeOperator(")")) return Add(line, ListExpression{true, {}});
  const Expression* expression = ParseTuple();
  words_->ExpectOperator(")");
  return expression;
}

const Expression* ExpressionParser::ParseList() {
  const int line = this->line();
  words_->Take();
  ListExpression list{false, {}};
  while (words_->ok() && !words_->TakeOperator("]")) {
    if (!list.items.empty()) {
      words_->ExpectOperator(",");
      if (words_->TakeOperator("]")) break;
    }
    list.items.push_back(Parse());
  }
  return Add(line, std::move(list));
}

const Expression* ExpressionParser::ParseDict() {
  const int line = this->line();
  words_->Take();
  DictExpression dict;
  while (words_->ok() && !words_->TakeOperator("}")) {
    if (!dict.entries.empty()) {
      words_->ExpectOperator(",");
      if (words_->TakeOperator("}")) break;
    }
    const Expression* key = Parse();
    words_->ExpectOperator(":");
    dict.entries.emplace_back(key, Parse());
  }
  return Add(line, std::move(dict));
}

const Expression* ExpressionParser::ParsePostfix(const Expression* object) {
  while (true) {
    const int line = this->line();
    if (words_->TakeOperator(".")) {
      object = ParseAttribute(object);
    } else if (words_->TakeOperator("[")) {
      object = ParseSubscript(object);
    } else if (words_->Peek().IsOperator("(")) {
      object = Add(line, CallExpression{object, ParseArguments()});
    } else {
      return object;
    }
  }
}

const Expression* ExpressionParser::ParseFiltersAndTests(const Expression* value) {
  while (true) {
    const int line = this->line();
    if (words_->Peek().IsOperator("|")) {
      value = ParseFilters(value, false);
    } else if (words_->TakeName("is")) {
      value = ParseTest(value);
    } else if (words_->Peek().IsOperator("(")) {
      value = Add(line, CallExpression{value, ParseArguments()});
    } else {
      return value;
    }
  }
}

const Expression* ExpressionParser::ParseAttribute(const Expression* object) {
  const int line = this->line();
  if (words_->Peek().kind == Kind::kInteger) {
    return Add(line, ItemExpression{object, ParseNumber()});
  }
  return Add(line, AttributeExpression{object, tree_->NameOf(words_->ExpectName())});
}

const Expression* ExpressionParser::ParseSubscript(const Expression* object) {
  const int line = this->line();
  const Expression* bounds[3] = {nullptr, nullptr, nullptr};
  std::size_t colons = 0;
  while (words_->ok() && !words_->TakeOperator("]")) {
    if (colons < 2 && words_->TakeOperator(":")) {
      ++colons;
    } else if (bounds[colons] == nullptr) {
      bounds[colons] = colons == 0 ? ParseTuple() : Parse();
    } else {
      words_->FailAtWord("']'");
    }
  }
  if (colons > 0) return Add(line, SliceExpression{object, bounds[0], bounds[1], bounds[2]});
  if (bounds[0] == nullptr) {
    words_->Fail("what is between [ and ] is missing");
    return object;
  }
  return Add(line, ItemExpression{object, bounds[0]});
}

void ExpressionParser::ParseArgument(CallArguments* arguments) {
  if (words_->TakeOperator("**")) {
    if (arguments->dict != nullptr) words_->Fail("a call has more than one '**'");
    arguments->dict = Parse();
  } else if (words_->TakeOperator("*")) {
    if (arguments->list != nullptr) words_->Fail("a call has more than one '*'");
    arguments->list = Parse();
  } else if (words_->Peek().kind == Kind::kName && words_->Peek(1).IsOperator("=")) {
    std::string name = words_->Take().text;
    words_->Take();
    arguments->named.emplace_back(std::move(name), Parse());
  } else {
    if (!arguments->named.empty() || arguments->list != nullptr || arguments->dict != nullptr) {
      words_->Fail("an argument without a name stands behind one with a name");
    }
    arguments->positional.push_back(Parse());
  }
}

CallArguments ExpressionParser::ParseArguments() {
  words_->ExpectOperator("(");
  CallArguments arguments;
  while (words_->ok() && !words_->TakeOperator(")")) {
    ParseArgument(&arguments);
    if (!words_->TakeOperator(",") && !words_->Peek().IsOperator(")")) {
      words_->FailAtWord("',' or ')'");
    }
  }
  return arguments;
}

const Expression* ExpressionParser::ParseFilters(const Expression* input, bool first_without_pipe) {
  while (first_without_pipe || words_->TakeOperator("|")) {
    first_without_pipe = false;
    const int line = this->line();
    std::string name = words_->ExpectName();
    CallArguments arguments;
    if (words_->Peek().IsOperator("(")) arguments = ParseArguments();
    const FilterBody body = FindFilter(name);
    input = Add(line, FilterExpression{input, std::move(name), body, std::move(arguments)});
  }
  return input;
}

const Expression* ExpressionParser::ParseTest(const Expression* value) {
  const int line = this->line();
  const bool negated = words_->TakeName("not");
  std::string name = words_->ExpectName();
  CallArguments arguments;
  const Lexeme& next = words_->Peek();
  const bool operand = next.kind == Kind::kName || next.kind == Kind::kString ||
                       next.kind == Kind::kInteger || next.kind == Kind::kFloat ||
                       next.IsOperator("[") || next.IsOperator("{");
  if (next.IsOperator("(")) {
    arguments = ParseArguments();
  } else if (operand && !next.IsName("else") && !next.IsName("or") && !next.IsName("and")) {
    if (next.IsName("is")) words_->Fail("a test cannot follow a test");
    arguments.positional.push_back(ParsePostfix(ParsePrimary()));
  }
  const TestBody body = FindTest(name);
  const Expression* test =
      Add(line, TestExpression{value, std::move(name), body, std::move(arguments)});
  return negated ? Add(line, UnaryExpression{UnaryExpression::Kind::kNot, test}) : test;
}

Target ExpressionParser::ParseOneTarget(bool with_attributes) {
  Target target;
  if (words_->TakeOperator("(")) {
    if (words_->Enter()) target = ParseTarget(with_attributes);
    words_->Leave();
    words_->ExpectOperator(")");
    return target;
  }
  const std::string name = words_->ExpectName();
  constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
  if (std::ranges::count(kConstants, name) > 0) {
    words_->Fail("'{}' cannot be assigned to", name);
  }
  target.name = tree_->NameOf(name);
  if (with_attributes && words_->TakeOperator(".")) target.attribute = words_->ExpectName();
  return target;
}

Target ExpressionParser::ParseTarget(bool with_attributes) {
  Target first = ParseOneTarget(with_attributes);
  if (!words_->Peek().IsOperator(",")) return first;
  Target all;
  all.parts.push_back(std::move(first));
  while (words_->TakeOperator(",")) {
    const Lexeme& next = words_->Peek();
    if (next.kind != Kind::kName && !next.IsOperator("(")) break;
    if (next.IsName("in")) break;
    all.parts.push_back(ParseOneTarget(with_attributes));
  }
  return all;
}

std::vector<Parameter> ExpressionParser::ParseParameters() {
  std::vector<Parameter> parameters;
  words_->ExpectOperator("(");
  while (words_->ok() && !words_->TakeOperator(")")) {
    if (!parameters.empty()) words_->ExpectOperator(",");
    Parameter parameter{tree_->NameOf(words_->ExpectName()), nullptr};
    if (words_->TakeOperator("=")) {
      parameter.otherwise = Parse();
    } else if (!parameters.empty() && parameters.back().otherwise != nullptr) {
      words_->Fail("a parameter without a default stands behind one with a default");
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

}  // namespace foretoken::jinja
