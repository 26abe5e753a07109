#include <algorithm>
#include <array>
#include <unordered_set>

#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/operations.h"

namespace foretoken::jinja {
namespace {

/// What an item is ordered by: itself or what `path` leads to, in small letters unless their case
/// counts.
Value SortKey(Workspace* workspace, const Value& item, const Value& path, bool case_sensitive) {
  const Value found = GetPath(workspace, item, path);
  return case_sensitive || !found.IsString() ? found : Lower(workspace, *found.AsText());
}

struct Keyed {
  Value key;
  Value item;
};

Value Sorted(Workspace* workspace, std::vector<Keyed> keyed, bool reverse) {
  std::ranges::stable_sort(keyed, [&](const Keyed& a, const Keyed& b) {
    if (!workspace->ok()) return false;
    return reverse ? Less(workspace, b.key, a.key) : Less(workspace, a.key, b.key);
  });
  List* list = workspace->NewList();
  for (Keyed& each : keyed) {
    if (!workspace->Push(list, std::move(each.item))) break;
  }
  return list;
}

/// The paths of "a,b.c", or the one that is no string.
std::vector<Value> Paths(Workspace* workspace, const Value& attribute) {
  const Text* text = attribute.AsText();
  if (text == nullptr) return {attribute};
  std::vector<Value> paths;
  for (std::size_t begin = 0; begin <= text->size() && workspace->ok();) {
    const std::size_t comma = std::min(text->bytes().find(',', begin), text->size());
    paths.push_back(Part(workspace, *text, begin, comma));
    begin = comma + 1;
  }
  return paths;
}

Value Sort(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "sort", arguments);
  const bool reverse = parameters.Flag("reverse", false);
  const bool case_sensitive = parameters.Flag("case_sensitive", false);
  const Value attribute = parameters.Optional("attribute");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  const std::vector<Value> paths = Paths(workspace, attribute);
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    List* key = workspace->NewList();
    for (const Value& path : paths) {
      workspace->Push(key, SortKey(workspace, item, path, case_sensitive));
    }
    if (!workspace->ok()) return {};
    keyed.push_back({key, item});
  }
  return Sorted(workspace, std::move(keyed), reverse);
}

Value DictSort(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "dictsort", arguments);
  const bool case_sensitive = parameters.Flag("case_sensitive", false);
  const Value by = parameters.OptionalText("by", workspace->NewString("key"));
  const bool reverse = parameters.Flag("reverse", false);
  if (!parameters.Close()) return {};
  const Dict* dict = input.AsDict();
  if (dict == nullptr) return workspace->Fail("dictsort takes a dict");
  const std::string side = by.IsString() ? by.AsText()->bytes() : "";
  if (side != "key" && side != "value") {
    return workspace->Fail("dictsort sorts by 'key' or by 'value'");
  }
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : dict->entries) {
    List* pair = workspace->NewList(List::Kind::kTuple);
    workspace->Push(pair, key);
    if (!workspace->Push(pair, value)) return {};
    keyed.push_back(
        {SortKey(workspace, side == "key" ? key : value, None{}, case_sensitive), pair});
  }
  return Sorted(workspace, std::move(keyed), reverse);
}

Value Unique(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "unique", arguments);
  const bool case_sensitive = parameters.Flag("case_sensitive", false);
  const Value attribute = parameters.Optional("attribute");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  List* unique = workspace->NewList(List::Kind::kGenerator);
  std::unordered_set<std::string> seen;
  for (const Value& item : items) {
    const auto key = KeyOf(SortKey(workspace, item, attribute, case_sensitive));
    if (!key.has_value()) {
      return workspace->Fail("unique compares strings, numbers and tuples only");
    }
    if (!workspace->Step()) return {};
    if (seen.insert(*key).second) workspace->Push(unique, item);
  }
  return unique;
}

template <bool kLargest>
Value Extreme(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, kLargest ? "max" : "min", arguments);
  const bool case_sensitive = parameters.Flag("case_sensitive", false);
  const Value attribute = parameters.Optional("attribute");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, input, &items)) return {};
  Value best;
  Value best_key;
  for (std::size_t i = 0; i < items.size() && workspace->ok(); ++i) {
    const Value key = SortKey(workspace, items[i], attribute, case_sensitive);
    const bool better =
        i == 0 || (kLargest ? Less(workspace, best_key, key) : Less(workspace, key, best_key));
    if (!better) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

constexpr std::array kOrderFilters = {
    NamedFilter{"sort", Sort},         NamedFilter{"dictsort", DictSort},
    NamedFilter{"unique", Unique},     NamedFilter{"min", Extreme<false>},
    NamedFilter{"max", Extreme<true>},
};

}  // namespace

std::span<const NamedFilter> OrderFilters() { return kOrderFilters; }

}  // namespace foretoken::jinja
