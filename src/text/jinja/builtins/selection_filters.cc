#include <fmt/format.h>

#include <array>

#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/operations.h"

namespace foretoken::jinja {
namespace {

/// Takes the first of the positional arguments away.
Value TakeFirst(Arguments* arguments) {
  Value first = arguments->positional.front();
  arguments->positional.erase(arguments->positional.begin());
  return first;
}

Value MapAttribute(Workspace* workspace, const std::vector<Value>& items, Arguments* arguments) {
  Parameters parameters(workspace, "map", arguments);
  const Value attribute = parameters.Required("attribute");
  const Value otherwise = parameters.Optional("default");
  List* mapped = workspace->NewList(List::Kind::kGenerator);
  if (!parameters.Close()) return {};
  for (const Value& item : items) {
    Value found = GetPath(workspace, item, attribute);
    if (found.IsUndefined() && !otherwise.IsNone()) found = otherwise;
    if (!workspace->Push(mapped, found)) break;
  }
  return mapped;
}

Value Map(Workspace* workspace, const Value& input, Arguments* arguments) {
  std::vector<Value> items;
  if (Truth(input) && !Iterate(workspace, input, &items)) return {};
  if (arguments->positional.empty()) return MapAttribute(workspace, items, arguments);
  const Value name = TakeFirst(arguments);
  const FilterBody filter = name.IsString() ? FindFilter(name.AsText()->bytes()) : nullptr;
  if (filter == nullptr) {
    return workspace->Fail(
        name.IsString() ? fmt::format("there is no filter '{}'", name.AsText()->bytes())
                        : fmt::format("map takes the name of a filter, not a {}", name.TypeName()));
  }
  List* mapped = workspace->NewList(List::Kind::kGenerator);
  // The filter may be map again.
  if (workspace->Enter()) {
    for (const Value& item : items) {
      Arguments each = *arguments;
      if (!workspace->Push(mapped, filter(workspace, item, &each))) break;
    }
  }
  workspace->Leave();
  return mapped;
}

/// What is wanted of items: a test, or none, which takes them as booleans.
template <bool kOfAttribute, bool kWanted>
Value Select(Workspace* workspace, const Value& input, Arguments* arguments) {
  std::vector<Value> items;
  if (Truth(input) && !Iterate(workspace, input, &items)) return {};
  Value attribute = None{};
  if (kOfAttribute) {
    if (arguments->positional.empty())
      return workspace->Fail("the attribute to look at is missing");
    attribute = TakeFirst(arguments);
  }
  TestBody test = nullptr;
  if (!arguments->positional.empty()) {
    const Value name = TakeFirst(arguments);
    if (name.IsString()) test = FindTest(name.AsText()->bytes());
    if (test == nullptr) {
      return workspace->Fail(
          name.IsString()
              ? fmt::format("there is no test '{}'", name.AsText()->bytes())
              : fmt::format("the name of a test is a string, not a {}", name.TypeName()));
    }
  }
  List* selected = workspace->NewList(List::Kind::kGenerator);
  for (const Value& item : items) {
    const Value looked_at = GetPath(workspace, item, attribute);
    Arguments each = *arguments;
    const bool passes = test == nullptr ? Truth(looked_at) : test(workspace, looked_at, &each);
    if (!workspace->Step()) return {};
    if (passes == kWanted) workspace->Push(selected, item);
  }
  return selected;
}

constexpr std::array kSelectionFilters = {
    NamedFilter{"map", Map},
    NamedFilter{"select", Select<false, true>},
    NamedFilter{"reject", Select<false, false>},
    NamedFilter{"selectattr", Select<true, true>},
    NamedFilter{"rejectattr", Select<true, false>},
};

}  // namespace

std::span<const NamedFilter> SelectionFilters() { return kSelectionFilters; }

}  // namespace foretoken::jinja
