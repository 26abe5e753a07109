#include "text/jinja/builtins/builtins.h"

#include <algorithm>
#include <span>

namespace foretoken::jinja {
namespace {

const NamedMethod* FindNamed(std::span<const NamedMethod> methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &NamedMethod::name);
  return found == methods.end() ? nullptr : &*found;
}

std::optional<Value> LoopAttribute(const Loop& loop, std::string_view name) {
  const std::int64_t count = loop.items.size();
  const std::int64_t index = loop.index;
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(count - index);
  if (name == "revindex0") return Value(count - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == count);
  if (name == "length") return Value(count);
  if (name == "depth") return Value(std::int64_t{loop.depth} + 1);
  if (name == "depth0") return Value(std::int64_t{loop.depth});
  if (name == "previtem") return index > 0 ? loop.items[loop.index - 1] : Value();
  if (name == "nextitem") return index + 1 < count ? loop.items[loop.index + 1] : Value();
  return std::nullopt;
}

}  // namespace

const NamedMethod* FindMethod(const Value& value, std::string_view name) {
  if (value.IsString()) {
    const NamedMethod* method = FindNamed(TextMethods(), name);
    return method != nullptr ? method : FindNamed(LetterMethods(), name);
  }
  if (value.AsDict() != nullptr) return FindNamed(DictMethods(), name);
  if (value.AsLoop() != nullptr) return FindNamed(LoopMethods(), name);
  const List* list = value.AsList();
  if (list == nullptr || list->kind == List::Kind::kGenerator || list->kind == List::Kind::kView) {
    return nullptr;
  }
  const NamedMethod* method = FindNamed(ListMethods(), name);
  // Tuples and ranges are not changed.
  const bool reads = name == "index" || name == "count";
  return list->kind == List::Kind::kList || reads ? method : nullptr;
}

std::optional<Value> FindAttribute(Workspace* workspace, const Value& value,
                                   std::string_view name) {
  if (const Namespace* names = value.AsNamespace()) {
    const Value* found = names->Find(name);
    if (found != nullptr) return *found;
  }
  if (const Loop* loop = value.AsLoop()) {
    if (auto attribute = LoopAttribute(*loop, name)) return attribute;
  }
  const NamedMethod* method = FindMethod(value, name);
  if (method == nullptr) return std::nullopt;
  return Value(workspace->NewMethod({value, method->name, method->body}));
}

}  // namespace foretoken::jinja
