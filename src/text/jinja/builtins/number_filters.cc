#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "base/numbers/integers.h"
#include "base/text/parse_number.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/operations.h"

namespace foretoken::jinja {
namespace {

constexpr double kTooLarge = 9223372036854775808.0;  // 2^63

/// The characters of a number as Python reads it: without white space around it and underscores
/// between digits. Nothing where an underscore is elsewhere.
std::optional<std::string> Digits(Workspace* workspace, const Text& text) {
  const Value stripped = Strip(workspace, text, None{}, {});
  const std::string& bytes = stripped.AsText()->bytes();
  const auto is_digit = [&](std::size_t at) {
    return at < bytes.size() && std::isalnum(static_cast<unsigned char>(bytes[at])) != 0;
  };
  std::string digits;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] != '_') {
      digits += bytes[at];
    } else if (at == 0 || !is_digit(at - 1) || !is_digit(at + 1)) {
      return std::nullopt;
    }
  }
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.erase(0, 1);
  return digits;
}

std::optional<double> ParseFloat(Workspace* workspace, const Text& text) {
  const auto digits = Digits(workspace, text);
  double number = 0;
  if (!digits.has_value() || !ParseNumber(*digits, &number)) return std::nullopt;
  return number;
}

std::optional<std::int64_t> ParseInteger(Workspace* workspace, const Text& text, int base) {
  auto digits = Digits(workspace, text);
  if (!digits.has_value()) return std::nullopt;
  const bool negative = digits->starts_with('-');
  std::string_view rest = std::string_view(*digits).substr(negative ? 1 : 0);
  if (rest.size() > 2 && rest[0] == '0') {
    const char mark = static_cast<char>(rest[1] | 0x20);
    const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == marked || base == 0)) {
      rest.remove_prefix(2);
      base = marked;
    }
  }
  if (rest.empty() || rest[0] == '-' || rest[0] == '+') return std::nullopt;
  std::string number(negative ? 1 : 0, '-');
  number += rest;
  std::int64_t parsed = 0;
  const char* end = number.data() + number.size();
  const auto result = std::from_chars(number.data(), end, parsed, base == 0 ? 10 : base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return parsed;
}

Value Truncated(Workspace* workspace, double number) {
  if (std::abs(number) < kTooLarge) return static_cast<std::int64_t>(number);
  return workspace->Fail("the number is too large for an integer");
}

Value Int(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "int", arguments);
  const Value otherwise = parameters.Optional("default", std::int64_t{0});
  const std::int64_t base = parameters.Integer("base", 10);
  if (!parameters.Close()) return {};
  if (base != 0 && (base < 2 || base > 36)) return workspace->Fail("a base is from 2 to 36");
  if (input.IsUndefined()) return workspace->Fail("what is not defined is no number");
  if (const auto integer = input.Integer()) return *integer;
  std::optional<double> number = input.Number();
  if (const Text* text = input.AsText()) {
    if (const auto parsed = ParseInteger(workspace, *text, static_cast<int>(base))) return *parsed;
    number = ParseFloat(workspace, *text);
    if (number.has_value() && std::isinf(*number)) return otherwise;
  }
  if (!number.has_value() || std::isnan(*number)) return otherwise;
  return Truncated(workspace, *number);
}

Value Float(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "float", arguments);
  const Value otherwise = parameters.Optional("default", 0.0);
  if (!parameters.Close()) return {};
  if (input.IsUndefined()) return workspace->Fail("what is not defined is no number");
  std::optional<double> number = input.Number();
  if (const Text* text = input.AsText()) number = ParseFloat(workspace, *text);
  return number.has_value() ? Value(*number) : otherwise;
}

Value Abs(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "abs", arguments);
  if (!parameters.Close()) return {};
  if (const double* number = input.AsFloat()) return std::abs(*number);
  const auto integer = input.Integer();
  if (!integer.has_value()) return workspace->Fail("abs takes a number");
  return *integer < 0 ? Negate(workspace, input) : Value(*integer);
}

/// To the nearest, and of two equally near ones to the even one.
double RoundedTo(double number, int digits) {
  if (!std::isfinite(number)) return number;
  if (digits < 0) {
    const double unit = std::pow(10.0, -digits);
    return std::nearbyint(number / unit) * unit;
  }
  std::array<char, 512> text;
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  double rounded = number;
  if (!ParseNumber({text.data(), Size(length)}, &rounded)) return number;
  return rounded;
}

Value Round(Workspace* workspace, const Value& input, Arguments* arguments) {
  constexpr std::int64_t kMostPlaces = 100;
  Parameters parameters(workspace, "round", arguments);
  const std::int64_t precision = parameters.Integer("precision", 0);
  const Value method = parameters.OptionalText("method", workspace->NewString("common"));
  if (!parameters.Close()) return {};
  const auto number = input.Number();
  const std::string how = method.IsString() ? method.AsText()->bytes() : "";
  if (!number.has_value()) return workspace->Fail("round takes a number");
  if (how != "common" && how != "ceil" && how != "floor") {
    return workspace->Fail("round knows the methods common, ceil and floor");
  }
  if (precision < -kMostPlaces || precision > kMostPlaces) {
    return workspace->Fail("round takes at most {} digits", kMostPlaces);
  }
  const int digits = precision;
  if (how == "common") {
    if (input.AsFloat() != nullptr) return RoundedTo(*number, digits);
    return digits >= 0 ? Value(*input.Integer()) : Truncated(workspace, RoundedTo(*number, digits));
  }
  const double unit = std::pow(10.0, digits);
  return (how == "ceil" ? std::ceil(*number * unit) : std::floor(*number * unit)) / unit;
}

Value Sum(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "sum", arguments);
  const Value attribute = parameters.Optional("attribute");
  Value sum = parameters.Optional("start", std::int64_t{0});
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  for (std::size_t i = 0; i < items.size() && workspace->ok(); ++i) {
    sum = Calculate(workspace, Operator::kAdd, sum, GetPath(workspace, items[i], attribute));
  }
  return sum;
}

constexpr std::array kNumberFilters = {
    NamedFilter{"int", Int},     NamedFilter{"float", Float}, NamedFilter{"abs", Abs},
    NamedFilter{"round", Round}, NamedFilter{"sum", Sum},
};

}  // namespace

std::span<const NamedFilter> NumberFilters() { return kNumberFilters; }

}  // namespace foretoken::jinja
