#include <algorithm>
#include <array>

#include "base/numbers/integers.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

Value LengthFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "length", arguments);
  if (!parameters.Close()) return {};
  if (const Text* text = input.AsText()) workspace->StepOver(text->size());
  const auto length = Length(input);
  if (length.has_value()) return *length;
  return workspace->Fail("a {} has no length", input.TypeName());
}

Value First(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "first", arguments);
  if (!parameters.Close()) return {};
  if (List* list = input.AsList()) {
    if (list->items.empty() || !workspace->Step(list->items.size())) return {};
    const Value first = list->items.front();
    if (list->kind == List::Kind::kGenerator) list->items.erase(list->items.begin());
    return first;
  }
  if (input.IsString()) return GetItem(workspace, input, std::int64_t{0});
  std::vector<Value> items;
  return Iterate(workspace, input, &items) && !items.empty() ? items.front() : Value();
}

Value Last(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "last", arguments);
  const List* list = input.AsList();
  if (list != nullptr && list->kind == List::Kind::kGenerator) {
    return workspace->Fail("a generator has no last item; the filter list makes a list of it");
  }
  if (input.IsString()) return GetItem(workspace, input, std::int64_t{-1});
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items) || items.empty()) return {};
  return items.back();
}

Value MakeList(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "list", arguments);
  return parameters.Close() ? Value(ListOf(workspace, input)) : Value();
}

Value JoinFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "join", arguments);
  const Value separator = Str(workspace, parameters.Optional("d", workspace->NewString("")));
  const Value attribute = parameters.Optional("attribute");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  for (Value& item : items) {
    if (!attribute.IsNone()) item = GetPath(workspace, item, attribute);
  }
  return JoinTexts(workspace, *separator.AsText(), items);
}

Value ItemsFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "items", arguments);
  List* items = workspace->NewList(List::Kind::kGenerator);
  if (!parameters.Close() || input.IsUndefined()) return items;
  const Dict* dict = input.AsDict();
  if (dict == nullptr) {
    return workspace->Fail("items takes a dict, not a {}", input.TypeName());
  }
  for (const auto& [key, value] : dict->entries) {
    List* pair = workspace->NewList(List::Kind::kTuple);
    if (!workspace->Push(pair, key) || !workspace->Push(pair, value)) break;
    if (!workspace->Push(items, pair)) break;
  }
  return items;
}

Value Reverse(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "reverse", arguments);
  if (!parameters.Close()) return {};
  if (input.IsString()) {
    return GetSlice(workspace, input, None{}, None{}, std::int64_t{-1});
  }
  const List* list = input.AsList();
  const bool generated = list != nullptr && list->kind == List::Kind::kGenerator;
  List* reversed = ListOf(workspace, input, generated ? List::Kind::kList : List::Kind::kGenerator);
  std::ranges::reverse(reversed->items);
  return reversed;
}

/// A new list at the end of `lists`, with items [begin, end) of `items`.
List* AddRun(Workspace* workspace, const std::vector<Value>& items, std::size_t begin,
             std::size_t end, List* lists) {
  List* run = workspace->NewList();
  for (std::size_t i = begin; i < end; ++i) workspace->Push(run, items[i]);
  workspace->Push(lists, run);
  return run;
}

Value Batch(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "batch", arguments);
  const std::int64_t size = parameters.Integer("linecount", 0);
  const Value fill = parameters.Optional("fill_with");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  if (size < 1) return workspace->Fail("batch takes a size from 1");
  List* batches = workspace->NewList(List::Kind::kGenerator);
  for (std::size_t at = 0; at < items.size() && workspace->ok();) {
    const std::size_t left = items.size() - at;
    const std::size_t end = at + std::min(left, Size(size));
    List* batch = AddRun(workspace, items, at, end, batches);
    while (!fill.IsNone() && std::ssize(batch->items) < size) {
      if (!workspace->Push(batch, fill)) break;
    }
    at = end;
  }
  return batches;
}

Value Slice(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "slice", arguments);
  const std::int64_t count = parameters.Integer("slices", 0);
  const Value fill = parameters.Optional("fill_with");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  if (count < 1) return workspace->Fail("slice takes a number of slices from 1");
  const std::size_t slices = count;
  const std::size_t longer = items.size() % slices;  // So many slices have one item more.
  List* all = workspace->NewList(List::Kind::kGenerator);
  std::size_t at = 0;
  for (std::size_t i = 0; i < slices && workspace->ok(); ++i) {
    const std::size_t end = at + items.size() / slices + (i < longer ? 1 : 0);
    List* slice = AddRun(workspace, items, at, end, all);
    if (!fill.IsNone() && i >= longer) workspace->Push(slice, fill);
    at = end;
  }
  return all;
}

Value Default(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "default", arguments);
  const Value otherwise = parameters.Optional("default_value", workspace->NewString(""));
  const bool falsy = parameters.Flag("boolean", false);
  if (!parameters.Close()) return {};
  return input.IsUndefined() || (falsy && !Truth(input)) ? otherwise : input;
}

Value Attribute(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "attr", arguments);
  const Value name = parameters.RequiredText("name");
  if (!parameters.Close()) return {};
  return FindAttribute(workspace, input, name.AsText()->bytes()).value_or(Value());
}

constexpr std::array kListFilters = {
    NamedFilter{"length", LengthFilter}, NamedFilter{"count", LengthFilter},
    NamedFilter{"first", First},         NamedFilter{"last", Last},
    NamedFilter{"list", MakeList},       NamedFilter{"join", JoinFilter},
    NamedFilter{"items", ItemsFilter},   NamedFilter{"reverse", Reverse},
    NamedFilter{"batch", Batch},         NamedFilter{"slice", Slice},
    NamedFilter{"default", Default},     NamedFilter{"d", Default},
    NamedFilter{"attr", Attribute},
};

}  // namespace

std::span<const NamedFilter> ListFilters() { return kListFilters; }

}  // namespace foretoken::jinja
