#include <algorithm>
#include <array>

#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/operations.h"

namespace foretoken::jinja {
namespace {

Value Append(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "append", arguments);
  const Value item = parameters.Required("object");
  if (parameters.Close()) workspace->Push(self.AsList(), item);
  return None{};
}

Value Extend(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "extend", arguments);
  const Value more = parameters.Required("iterable");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, more, &items)) return {};
  for (Value& item : items) {
    if (!workspace->Push(self.AsList(), std::move(item))) break;
  }
  return None{};
}

Value Insert(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "insert", arguments);
  const std::int64_t index = parameters.Integer("index", 0);
  const Value item = parameters.Required("object");
  std::vector<Value>& items = self.AsList()->items;
  if (!parameters.Close() || !workspace->Step(items.size())) return {};
  if (!workspace->Push(self.AsList(), item)) return {};
  const auto count = std::ssize(items) - 1;
  const std::int64_t place =
      std::clamp(index < 0 ? std::max(index, -count) + count : index, std::int64_t{0}, count);
  std::rotate(items.begin() + place, items.end() - 1, items.end());
  return None{};
}

Value PopItem(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "pop", arguments);
  const std::int64_t index = parameters.Integer("index", -1);
  std::vector<Value>& items = self.AsList()->items;
  if (!parameters.Close() || !workspace->Step(items.size())) return {};
  const std::int64_t count = items.size();
  if (index < -count || index >= count) return workspace->Fail("pop from outside of the list");
  const auto place = items.begin() + (index < 0 ? index + count : index);
  Value item = std::move(*place);
  items.erase(place);
  return item;
}

Value IndexOf(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "index", arguments);
  const Value wanted = parameters.Required("value");
  if (!parameters.Close()) return {};
  const std::vector<Value>& items = self.AsList()->items;
  for (std::size_t i = 0; i < items.size() && workspace->ok(); ++i) {
    if (Equal(workspace, items[i], wanted)) return static_cast<std::int64_t>(i);
  }
  return workspace->Fail("the value that is looked for is not in the list");
}

Value Count(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "count", arguments);
  const Value wanted = parameters.Required("value");
  if (!parameters.Close()) return {};
  std::int64_t count = 0;
  for (const Value& item : self.AsList()->items) {
    if (Equal(workspace, item, wanted)) ++count;
    if (!workspace->ok()) break;
  }
  return count;
}

Value CopyList(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "copy", arguments);
  return parameters.Close() ? Value(ListOf(workspace, self)) : Value();
}

Value ItemsMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "items", arguments);
  List* items = workspace->NewList(List::Kind::kView);
  if (!parameters.Close()) return {};
  for (const auto& [key, value] : self.AsDict()->entries) {
    List* pair = workspace->NewList(List::Kind::kTuple);
    if (!workspace->Push(pair, key) || !workspace->Push(pair, value)) break;
    if (!workspace->Push(items, pair)) break;
  }
  return items;
}

template <bool kKeys>
Value HalfOfItems(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, kKeys ? "keys" : "values", arguments);
  List* half = workspace->NewList(List::Kind::kView);
  if (!parameters.Close()) return {};
  for (const auto& [key, value] : self.AsDict()->entries) {
    if (!workspace->Push(half, kKeys ? key : value)) break;
  }
  return half;
}

Value Get(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "get", arguments);
  const Value key = parameters.Required("key");
  const Value otherwise = parameters.Optional("default");
  if (!parameters.Close()) return {};
  const auto text = KeyOf(key);
  if (!text.has_value() && !key.IsUndefined()) {
    return workspace->Fail("a {} cannot be the key of a dict", key.TypeName());
  }
  const Value* found = text.has_value() ? self.AsDict()->FindKey(*text) : nullptr;
  return found == nullptr ? otherwise : *found;
}

Value PopKey(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "pop", arguments);
  const Value key = parameters.Required("key");
  const bool has_default = parameters.Has("default");
  const Value otherwise = parameters.Optional("default");
  Dict* dict = self.AsDict();
  if (!parameters.Close() || !workspace->Step(dict->entries.size())) return {};
  const auto text = KeyOf(key);
  const Value* found = text.has_value() ? dict->FindKey(*text) : nullptr;
  if (found == nullptr) {
    if (has_default) return otherwise;
    return workspace->Fail("pop of a key that the dict lacks");
  }
  Value value = *found;
  dict->Remove(*text);
  return value;
}

Value Update(Workspace* workspace, const Value& self, Arguments* arguments) {
  const Arguments given = std::move(*arguments);
  if (given.positional.size() > 1) return workspace->Fail("update takes one dict");
  if (!given.positional.empty()) {
    const Dict* other = given.positional[0].AsDict();
    if (other == nullptr) return workspace->Fail("update takes a dict");
    const std::vector<std::pair<Value, Value>> entries = other->entries;
    for (const auto& [key, value] : entries) {
      if (!workspace->Set(self.AsDict(), key, value)) break;
    }
  }
  for (const auto& [name, value] : given.named) {
    workspace->Set(self.AsDict(), workspace->NewString(name), value);
  }
  return None{};
}

Value SetDefault(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "setdefault", arguments);
  const Value key = parameters.Required("key");
  const Value otherwise = parameters.Optional("default");
  if (!parameters.Close()) return {};
  const auto text = KeyOf(key);
  const Value* found = text.has_value() ? self.AsDict()->FindKey(*text) : nullptr;
  if (found != nullptr) return *found;
  workspace->Set(self.AsDict(), key, otherwise);
  return otherwise;
}

Value CopyDict(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "copy", arguments);
  Dict* copy = workspace->NewDict();
  if (!parameters.Close()) return {};
  for (const auto& [key, value] : self.AsDict()->entries) {
    if (!workspace->Set(copy, key, value)) break;
  }
  return copy;
}

Value Cycle(Workspace* workspace, const Value& self, Arguments* arguments) {
  if (arguments->positional.empty()) return workspace->Fail("cycle lacks its values");
  return arguments->positional[self.AsLoop()->index % arguments->positional.size()];
}

Value Changed(Workspace* workspace, const Value& self, Arguments* arguments) {
  Loop* loop = self.AsLoop();
  List* told = workspace->NewList(List::Kind::kTuple);
  for (const Value& value : arguments->positional) workspace->Push(told, value);
  if (loop->last_changed != nullptr && Equal(workspace, loop->last_changed, told)) return false;
  loop->last_changed = told;
  return true;
}

constexpr std::array kListMethods = {
    NamedMethod{"append", Append}, NamedMethod{"extend", Extend}, NamedMethod{"insert", Insert},
    NamedMethod{"pop", PopItem},   NamedMethod{"index", IndexOf}, NamedMethod{"count", Count},
    NamedMethod{"copy", CopyList},
};

// A dict has all of Python's methods, as an entry of the same name is not what `dict.name` means.
constexpr std::array kDictMethods = {
    NamedMethod{"items", ItemsMethod},
    NamedMethod{"keys", HalfOfItems<true>},
    NamedMethod{"values", HalfOfItems<false>},
    NamedMethod{"get", Get},
    NamedMethod{"pop", PopKey},
    NamedMethod{"update", Update},
    NamedMethod{"setdefault", SetDefault},
    NamedMethod{"copy", CopyDict},
    NamedMethod{"clear", nullptr},
    NamedMethod{"popitem", nullptr},
    NamedMethod{"fromkeys", nullptr},
};

constexpr std::array kLoopMethods = {
    NamedMethod{"cycle", Cycle},
    NamedMethod{"changed", Changed},
};

}  // namespace

std::span<const NamedMethod> ListMethods() { return kListMethods; }
std::span<const NamedMethod> DictMethods() { return kDictMethods; }
std::span<const NamedMethod> LoopMethods() { return kLoopMethods; }

}  // namespace foretoken::jinja
