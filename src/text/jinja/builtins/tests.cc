#include "text/jinja/builtins/builtins.h"

#include <algorithm>
#include <array>

#include "text/jinja/builtins/parameters.h"
#include "text/jinja/letters.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

struct NamedTest {
  std::string_view name;
  TestBody body;
};

/// A test that looks at the value alone.
template <bool (*kTest)(const Value&)>
bool PlainTest(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "a test", arguments);
  return parameters.Close() && kTest(input);
}

bool IsDefined(const Value& value) { return !value.IsUndefined(); }
bool IsUndefined(const Value& value) { return value.IsUndefined(); }
bool IsNone(const Value& value) { return value.IsNone(); }
bool IsBoolean(const Value& value) { return value.IsBool(); }
bool IsTrue(const Value& value) { return value.IsBool() && *value.AsBool(); }
bool IsFalse(const Value& value) { return value.IsBool() && !*value.AsBool(); }
bool IsInteger(const Value& value) { return value.IsInteger(); }
bool IsFloat(const Value& value) { return value.AsFloat() != nullptr; }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsString(const Value& value) { return value.IsString(); }
bool IsMapping(const Value& value) { return value.AsDict() != nullptr; }
bool IsCallable(const Value& value) { return value.IsCallable() || value.IsUndefined(); }
bool IsEscaped(const Value&) { return false; }
bool IsIterable(const Value& value) {
  return value.IsUndefined() || value.IsString() || value.AsList() != nullptr ||
         value.AsDict() != nullptr || value.AsLoop() != nullptr;
}
bool IsSequence(const Value& value) {
  if (value.IsUndefined() || value.IsString() || value.AsDict() != nullptr) return true;
  const List* list = value.AsList();
  return list != nullptr && list->kind != List::Kind::kGenerator && list->kind != List::Kind::kView;
}

template <Comparison kComparison>
bool Compared(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "a comparison", arguments);
  const Value other = parameters.Required("other");
  return parameters.Close() && Compare(workspace, kComparison, input, other);
}

bool Remains(Workspace* workspace, const Value& input, const Value& divisor, std::int64_t wanted) {
  const Value rest = Calculate(workspace, Operator::kModulo, input, divisor);
  return workspace->ok() && Equal(workspace, rest, wanted);
}

bool IsOdd(Workspace* workspace, const Value& input, Arguments*) {
  return Remains(workspace, input, std::int64_t{2}, 1);
}

bool IsEven(Workspace* workspace, const Value& input, Arguments*) {
  return Remains(workspace, input, std::int64_t{2}, 0);
}

bool IsDivisible(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "divisibleby", arguments);
  const Value divisor = parameters.Required("num");
  return parameters.Close() && Remains(workspace, input, divisor, 0);
}

bool IsSame(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "sameas", arguments);
  const Value other = parameters.Required("other");
  return parameters.Close() && input.IsSame(other);
}

template <bool kUpper>
bool HasCaseTest(Workspace* workspace, const Value& input, Arguments*) {
  const Value string = Str(workspace, input);
  const std::string& bytes = string.AsText()->bytes();
  return workspace->StepOver(bytes.size()) && AllHaveCase(bytes, kUpper);
}

bool NamesFilter(Workspace*, const Value& input, Arguments*) {
  return input.IsString() && FindFilter(input.AsText()->bytes()) != nullptr;
}

bool NamesTest(Workspace*, const Value& input, Arguments*) {
  return input.IsString() && FindTest(input.AsText()->bytes()) != nullptr;
}

constexpr std::array kTests = {
    NamedTest{"defined", PlainTest<IsDefined>},
    NamedTest{"undefined", PlainTest<IsUndefined>},
    NamedTest{"none", PlainTest<IsNone>},
    NamedTest{"boolean", PlainTest<IsBoolean>},
    NamedTest{"true", PlainTest<IsTrue>},
    NamedTest{"false", PlainTest<IsFalse>},
    NamedTest{"integer", PlainTest<IsInteger>},
    NamedTest{"float", PlainTest<IsFloat>},
    NamedTest{"number", PlainTest<IsNumber>},
    NamedTest{"string", PlainTest<IsString>},
    NamedTest{"mapping", PlainTest<IsMapping>},
    NamedTest{"iterable", PlainTest<IsIterable>},
    NamedTest{"sequence", PlainTest<IsSequence>},
    NamedTest{"callable", PlainTest<IsCallable>},
    NamedTest{"escaped", PlainTest<IsEscaped>},
    NamedTest{"odd", IsOdd},
    NamedTest{"even", IsEven},
    NamedTest{"divisibleby", IsDivisible},
    NamedTest{"sameas", IsSame},
    NamedTest{"lower", HasCaseTest<false>},
    NamedTest{"upper", HasCaseTest<true>},
    NamedTest{"filter", NamesFilter},
    NamedTest{"test", NamesTest},
    NamedTest{"in", Compared<Comparison::kIn>},
    NamedTest{"==", Compared<Comparison::kEqual>},
    NamedTest{"eq", Compared<Comparison::kEqual>},
    NamedTest{"equalto", Compared<Comparison::kEqual>},
    NamedTest{"!=", Compared<Comparison::kUnequal>},
    NamedTest{"ne", Compared<Comparison::kUnequal>},
    NamedTest{">", Compared<Comparison::kGreater>},
    NamedTest{"gt", Compared<Comparison::kGreater>},
    NamedTest{"greaterthan", Compared<Comparison::kGreater>},
    NamedTest{">=", Compared<Comparison::kGreaterEqual>},
    NamedTest{"ge", Compared<Comparison::kGreaterEqual>},
    NamedTest{"<", Compared<Comparison::kLess>},
    NamedTest{"lt", Compared<Comparison::kLess>},
    NamedTest{"lessthan", Compared<Comparison::kLess>},
    NamedTest{"<=", Compared<Comparison::kLessEqual>},
    NamedTest{"le", Compared<Comparison::kLessEqual>},
};

}  // namespace

TestBody FindTest(std::string_view name) {
  const auto found = std::ranges::find(kTests, name, &NamedTest::name);
  return found == kTests.end() ? nullptr : found->body;
}

}  // namespace foretoken::jinja
