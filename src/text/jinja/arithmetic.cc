#include <cmath>
#include <cstdint>

#include "text/jinja/builtins/format.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/operations.h"

namespace foretoken::jinja {
namespace {

constexpr const char* kNames[] = {"+", "-", "*", "/", "//", "%", "**"};

Value TooLarge(Workspace* workspace) { return workspace->Fail("the result has more than 64 bits"); }

Value Power(Workspace* workspace, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return workspace->Fail("0 has no negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  // These never leave the numbers, however often they are multiplied.
  if (base == 0 || base == 1) return exponent == 0 ? std::int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return TooLarge(workspace);
  }
  return result;
}

Value WithIntegers(Workspace* workspace, Operator operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (operation) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? TooLarge(workspace) : Value(result);
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? TooLarge(workspace) : Value(result);
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? TooLarge(workspace) : Value(result);
    case Operator::kPower:
      return Power(workspace, a, b);
    default:
      break;
  }
  if (b == 0) return workspace->Fail("division by zero");
  if (operation == Operator::kDivide) return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) {
    if (operation == Operator::kModulo) return std::int64_t{0};
    return __builtin_sub_overflow(std::int64_t{0}, a, &result) ? TooLarge(workspace)
                                                               : Value(result);
  }
  // Python rounds down, and a remainder has the sign of the divisor.
  const bool down = a % b != 0 && (a % b < 0) != (b < 0);
  if (operation == Operator::kFloorDivide) return a / b - (down ? 1 : 0);
  return a % b + (down ? b : 0);
}

Value WithFloats(Workspace* workspace, Operator operation, double a, double b) {
  switch (operation) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kPower: {
      if (a < 0 && std::floor(b) != b) return workspace->Fail("the power is no real number");
      if (a == 0 && b < 0) return workspace->Fail("0 has no negative power");
      const double power = std::pow(a, b);
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) return TooLarge(workspace);
      return power;
    }
    default:
      break;
  }
  if (b == 0) return workspace->Fail("division by zero");
  if (operation == Operator::kDivide) return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (operation == Operator::kModulo) return remainder == 0 ? std::copysign(0.0, b) : remainder;
  return std::round((a - remainder) / b);
}

Value Concatenate(Workspace* workspace, const Value& left, const Value& right) {
  const bool is_safe = left.IsSafe() || right.IsSafe();
  TextBuilder builder(workspace);
  for (const Value* side : {&left, &right}) {
    const Value part = is_safe ? Escape(workspace, *side) : *side;
    if (!builder.Append(*part.AsText())) break;
  }
  return builder.Finish(is_safe);
}

Value JoinLists(Workspace* workspace, const List& left, const List& right) {
  List* joined = workspace->NewList(left.kind);
  for (const List* part : {&left, &right}) {
    for (std::size_t i = 0; i < part->items.size(); ++i) {
      if (!workspace->Push(joined, part->items[i])) return {};
    }
  }
  return joined;
}

/// A string or list, so many times.
Value Repeat(Workspace* workspace, const Value& value, std::int64_t times) {
  if (const Text* text = value.AsText()) {
    TextBuilder builder(workspace);
    for (; times > 0 && !text->empty() && builder.Append(*text); --times) continue;
    return builder.Finish();
  }
  const List& list = *value.AsList();
  List* repeated = workspace->NewList(list.kind);
  for (; times > 0 && !list.items.empty() && workspace->ok(); --times) {
    for (const Value& item : list.items) {
      if (!workspace->Push(repeated, item)) break;
    }
  }
  return repeated;
}

bool IsPlainList(const Value& value) {
  const List* list = value.AsList();
  return list != nullptr && (list->kind == List::Kind::kList || list->kind == List::Kind::kTuple);
}

Value Mismatch(Workspace* workspace, Operator operation, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    const std::string* name = side->UndefinedName();
    if (name != nullptr) return workspace->Fail("'{}' is not defined", *name);
  }
  return workspace->Fail("a {} and a {} cannot be joined by {}", left.TypeName(), right.TypeName(),
                         kNames[static_cast<std::size_t>(operation)]);
}

}  // namespace

Value Calculate(Workspace* workspace, Operator operation, const Value& left, const Value& right) {
  const bool texts = left.IsString() && right.IsString();
  if (texts && operation == Operator::kAdd) return Concatenate(workspace, left, right);
  if (left.IsString() && operation == Operator::kModulo) {
    return FormatPercent(workspace, *left.AsText(), right);
  }
  const auto a = left.Integer();
  const auto b = right.Integer();
  if (a.has_value() && b.has_value()) return WithIntegers(workspace, operation, *a, *b);
  const auto x = left.Number();
  const auto y = right.Number();
  if (x.has_value() && y.has_value()) return WithFloats(workspace, operation, *x, *y);
  if (operation == Operator::kAdd && IsPlainList(left) && IsPlainList(right) &&
      left.AsList()->kind == right.AsList()->kind) {
    return JoinLists(workspace, *left.AsList(), *right.AsList());
  }
  if (operation == Operator::kMultiply) {
    if ((left.IsString() || IsPlainList(left)) && b.has_value()) return Repeat(workspace, left, *b);
    if ((right.IsString() || IsPlainList(right)) && a.has_value()) {
      return Repeat(workspace, right, *a);
    }
  }
  return Mismatch(workspace, operation, left, right);
}

Value Negate(Workspace* workspace, const Value& value) {
  if (const double* number = value.AsFloat()) return -*number;
  if (const auto integer = value.Integer()) {
    return WithIntegers(workspace, Operator::kSubtract, 0, *integer);
  }
  return workspace->Fail("a {} has no sign", value.TypeName());
}

}  // namespace foretoken::jinja
