#include "text/jinja/operations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/letters.h"

namespace foretoken::jinja {
namespace {

constexpr int kDeepestCompared = 100;

bool TooDeep(Workspace* workspace, int depth) {
  if (depth <= kDeepestCompared) return !workspace->Step();
  workspace->Fail("lists within more than {} others cannot be compared", kDeepestCompared);
  return true;
}

bool EqualAt(Workspace* workspace, const Value& left, const Value& right, int depth);

bool EqualLists(Workspace* workspace, const List& left, const List& right, int depth) {
  if (left.kind != right.kind || left.items.size() != right.items.size()) return false;
  if (left.kind == List::Kind::kGenerator || left.kind == List::Kind::kView) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!EqualAt(workspace, left.items[i], right.items[i], depth)) return false;
  }
  return true;
}

bool EqualDicts(Workspace* workspace, const Dict& left, const Dict& right, int depth) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = right.FindKey(*KeyOf(key));
    if (other == nullptr || !EqualAt(workspace, value, *other, depth)) return false;
  }
  return true;
}

bool EqualAt(Workspace* workspace, const Value& left, const Value& right, int depth) {
  if (TooDeep(workspace, depth)) return false;
  if (const Text* text = left.AsText()) {
    const Text* other = right.AsText();
    return other != nullptr && text->bytes() == other->bytes();
  }
  const auto integer = left.Integer();
  const auto other_integer = right.Integer();
  if (integer.has_value() && other_integer.has_value()) return *integer == *other_integer;
  const auto number = left.Number();
  const auto other_number = right.Number();
  if (number.has_value() || other_number.has_value()) return number == other_number;
  if (left.AsList() != nullptr && right.AsList() != nullptr) {
    return left.AsList() == right.AsList() ||
           EqualLists(workspace, *left.AsList(), *right.AsList(), depth + 1);
  }
  if (left.AsDict() != nullptr && right.AsDict() != nullptr) {
    return left.AsDict() == right.AsDict() ||
           EqualDicts(workspace, *left.AsDict(), *right.AsDict(), depth + 1);
  }
  return left.IsSame(right);
}

bool LessAt(Workspace* workspace, const Value& left, const Value& right, int depth) {
  if (TooDeep(workspace, depth)) return false;
  const Text* text = left.AsText();
  const Text* other_text = right.AsText();
  if (text != nullptr && other_text != nullptr) return text->bytes() < other_text->bytes();
  const auto integer = left.Integer();
  const auto other_integer = right.Integer();
  if (integer.has_value() && other_integer.has_value()) return *integer < *other_integer;
  const auto number = left.Number();
  const auto other_number = right.Number();
  if (number.has_value() && other_number.has_value()) return *number < *other_number;
  const List* list = left.AsList();
  const List* other = right.AsList();
  if (list != nullptr && other != nullptr && list->kind == other->kind) {
    const std::size_t both = std::min(list->items.size(), other->items.size());
    for (std::size_t i = 0; i < both && workspace->ok(); ++i) {
      const Value& a = list->items[i];
      const Value& b = other->items[i];
      if (!EqualAt(workspace, a, b, depth + 1)) return LessAt(workspace, a, b, depth + 1);
    }
    return list->items.size() < other->items.size();
  }
  workspace->Fail("there is no order between a {} and a {}", left.TypeName(), right.TypeName());
  return false;
}

/// Where an index counted from the end where negative lies; nothing where it is outside.
std::optional<std::size_t> PlaceIn(std::int64_t index, std::size_t size) {
  const std::int64_t count = size;
  if (index < -count || index >= count) return std::nullopt;
  return Size(index < 0 ? index + count : index);
}

/// The byte at which the character with this index begins.
std::size_t ByteOf(std::string_view bytes, std::size_t index, std::size_t characters) {
  if (characters == bytes.size()) return index;
  std::size_t at = 0;
  for (; index > 0; --index) {
    ++at;
    while (at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80) ++at;
  }
  return at;
}

Value Character(Workspace* workspace, const Text& text, std::int64_t index) {
  workspace->StepOver(text.size());
  const std::size_t characters = CharactersIn(text.bytes());
  const auto place = PlaceIn(index, characters);
  if (!place.has_value()) return Undefined{};
  const std::size_t begin = ByteOf(text.bytes(), *place, characters);
  std::size_t length = 0;
  CodeAt(text.bytes(), begin, &length);
  TextBuilder builder(workspace);
  builder.Append(text, begin, begin + length);
  return builder.Finish();
}

void AppendCharacters(Workspace* workspace, const Text& text, std::vector<Value>* items) {
  for (std::size_t at = 0; at < text.size() && workspace->ok();) {
    std::size_t length = 0;
    CodeAt(text.bytes(), at, &length);
    TextBuilder builder(workspace);
    builder.Append(text, at, at + length);
    items->push_back(builder.Finish());
    at += length;
  }
}

/// The indices that a slice takes of `size` items, in order.
struct Range {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
};

std::optional<Range> RangeOf(Workspace* workspace, const Value& start, const Value& stop,
                             const Value& step, std::size_t size) {
  for (const Value* bound : {&start, &stop, &step}) {
    if (bound->IsNone() || bound->Integer().has_value()) continue;
    workspace->Fail("a slice needs integers, not a {}", bound->TypeName());
    return std::nullopt;
  }
  const std::int64_t count = size;
  const std::int64_t by = step.Integer().value_or(1);
  if (by == 0) {
    workspace->Fail("the step of a slice cannot be 0");
    return std::nullopt;
  }
  const std::int64_t low = by > 0 ? 0 : -1;
  const std::int64_t high = by > 0 ? count : count - 1;
  const auto bound = [&](const Value& given, std::int64_t otherwise) {
    if (given.IsNone()) return otherwise;
    const std::int64_t index = *given.Integer();
    return std::clamp(index < 0 ? std::max(index, -count - 1) + count : index, low, high);
  };
  return Range{bound(start, by > 0 ? low : high), bound(stop, by > 0 ? high : low), by};
}

template <typename Take>
void ForEachIn(const Range& range, Take take) {
  for (std::int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop;) {
    if (!take(Size(i))) return;
    const std::int64_t left = range.step > 0 ? range.stop - i : i - range.stop;
    // The last step of a wide slice would leave the numbers.
    if (range.step > 0 ? left <= range.step : -left >= range.step) return;
    i += range.step;
  }
}

Value SliceText(Workspace* workspace, const Text& text, const Range& range,
                std::size_t characters) {
  const std::string_view bytes = text.bytes();
  TextBuilder builder(workspace);
  workspace->StepOver(bytes.size());
  if (range.step == 1) {
    if (range.start >= range.stop) return builder.Finish();
    const std::size_t begin = ByteOf(bytes, range.start, characters);
    const std::size_t end = ByteOf(bytes, range.stop, characters);
    builder.Append(text, begin, end);
    return builder.Finish();
  }
  if (!workspace->Spend(characters * sizeof(std::size_t))) return {};
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < bytes.size();) {
    places.push_back(at);
    std::size_t length = 0;
    CodeAt(bytes, at, &length);
    at += length;
  }
  workspace->Refund(characters * sizeof(std::size_t));
  places.push_back(bytes.size());
  ForEachIn(range, [&](std::size_t i) { return builder.Append(text, places[i], places[i + 1]); });
  return builder.Finish();
}

}  // namespace

bool Truth(const Value& value) {
  if (value.IsUndefined() || value.IsNone()) return false;
  if (const auto number = value.Number()) return *number != 0;
  if (const List* list = value.AsList(); list != nullptr && list->kind == List::Kind::kGenerator) {
    return true;
  }
  const auto length = Length(value);
  return !length.has_value() || *length > 0;
}

bool Equal(Workspace* workspace, const Value& left, const Value& right) {
  return EqualAt(workspace, left, right, 0);
}

bool Less(Workspace* workspace, const Value& left, const Value& right) {
  return LessAt(workspace, left, right, 0);
}

bool Contains(Workspace* workspace, const Value& container, const Value& item) {
  if (const Text* text = container.AsText()) {
    if (const Text* part = item.AsText()) {
      workspace->StepOver(text->size());
      return text->bytes().find(part->bytes()) != std::string::npos;
    }
    workspace->Fail("what is in a string is a string, not a {}", item.TypeName());
    return false;
  }
  if (const Dict* dict = container.AsDict()) {
    const auto key = KeyOf(item);
    return key.has_value() && dict->FindKey(*key) != nullptr;
  }
  std::vector<Value> items;
  if (!Iterate(workspace, container, &items)) return false;
  return std::ranges::any_of(items,
                             [&](const Value& other) { return Equal(workspace, other, item); });
}

bool Compare(Workspace* workspace, Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEqual:
      return Equal(workspace, left, right);
    case Comparison::kUnequal:
      return !Equal(workspace, left, right);
    case Comparison::kLess:
      return Less(workspace, left, right);
    case Comparison::kGreater:
      return Less(workspace, right, left);
    // Not the opposite of less: nothing is more or less than not-a-number.
    case Comparison::kLessEqual:
      return Less(workspace, left, right) || Equal(workspace, left, right);
    case Comparison::kGreaterEqual:
      return Less(workspace, right, left) || Equal(workspace, left, right);
    case Comparison::kIn:
      return Contains(workspace, right, left);
    case Comparison::kNotIn:
      return !Contains(workspace, right, left);
  }
  return false;
}

std::optional<std::int64_t> Length(const Value& value) {
  if (value.IsUndefined()) return 0;
  if (const Text* text = value.AsText()) {
    return static_cast<std::int64_t>(CharactersIn(text->bytes()));
  }
  if (const Dict* dict = value.AsDict()) return std::ssize(dict->entries);
  if (const Loop* loop = value.AsLoop()) return std::ssize(loop->items);
  const List* list = value.AsList();
  if (list == nullptr || list->kind == List::Kind::kGenerator) return std::nullopt;
  return std::ssize(list->items);
}

bool Iterate(Workspace* workspace, const Value& value, std::vector<Value>* items) {
  if (value.IsUndefined()) return workspace->ok();
  if (const Text* text = value.AsText()) {
    AppendCharacters(workspace, *text, items);
    return workspace->ok();
  }
  if (const Dict* dict = value.AsDict()) {
    if (!workspace->Step(dict->entries.size())) return false;
    for (const auto& entry : dict->entries) items->push_back(entry.first);
    return true;
  }
  List* list = value.AsList();
  if (list == nullptr) {
    workspace->Fail("there is no loop over a {}", value.TypeName());
    return false;
  }
  if (!workspace->Step(list->items.size())) return false;
  if (list->kind == List::Kind::kGenerator) {
    *items = std::exchange(list->items, {});
  } else {
    *items = list->items;
  }
  return true;
}

List* ListOf(Workspace* workspace, const Value& value, List::Kind kind) {
  List* list = workspace->NewList(kind);
  std::vector<Value> items;
  if (!Iterate(workspace, value, &items)) return list;
  if (workspace->Spend(2 * items.size() * sizeof(Value))) list->items = std::move(items);
  return list;
}

Value GetItem(Workspace* workspace, const Value& object, const Value& key) {
  if (object.IsUndefined()) {
    const std::string* name = object.UndefinedName();
    return workspace->Fail("{} is not defined, so nothing can be taken from it",
                           name == nullptr ? "a value" : fmt::format("'{}'", *name));
  }
  if (const Dict* dict = object.AsDict()) {
    const auto text = KeyOf(key);
    const Value* found = text.has_value() ? dict->FindKey(*text) : nullptr;
    if (found != nullptr) return *found;
  }
  const List* list = object.AsList();
  const auto index = key.Integer();
  if (list != nullptr && index.has_value() && list->kind != List::Kind::kGenerator &&
      list->kind != List::Kind::kView) {
    const auto place = PlaceIn(*index, list->items.size());
    if (place.has_value()) return list->items[*place];
  }
  if (const Text* text = object.AsText(); text != nullptr && index.has_value()) {
    return Character(workspace, *text, *index);
  }
  // As jinja2 has it, an item that is not there may be an attribute.
  if (const Text* name = key.AsText()) {
    if (auto attribute = FindAttribute(workspace, object, name->bytes())) return *attribute;
  }
  return Undefined{};
}

Value GetAttribute(Workspace* workspace, const Value& object, const std::string* name) {
  if (object.IsUndefined()) return GetItem(workspace, object, {});
  if (auto attribute = FindAttribute(workspace, object, *name)) return *attribute;
  if (const Dict* dict = object.AsDict()) {
    if (const Value* found = dict->Find(*name)) return *found;
  }
  return Undefined{name};
}

Value GetPath(Workspace* workspace, const Value& object, const Value& path) {
  const Text* text = path.AsText();
  if (text == nullptr) return path.IsNone() ? object : GetItem(workspace, object, path);
  Value found = object;
  std::size_t begin = 0;
  while (workspace->ok()) {
    const std::size_t dot = std::min(text->bytes().find('.', begin), text->size());
    const std::string_view part = std::string_view(text->bytes()).substr(begin, dot - begin);
    constexpr std::size_t kMostIndexDigits = 18;
    const bool number = !part.empty() && part.size() <= kMostIndexDigits &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    const Value key =
        number ? Value(std::int64_t{std::stoll(std::string(part))}) : workspace->NewString(part);
    found = GetItem(workspace, found, key);
    if (dot == text->size()) return found;
    begin = dot + 1;
  }
  return {};
}

Value GetSlice(Workspace* workspace, const Value& object, const Value& start, const Value& stop,
               const Value& step) {
  const List* list = object.AsList();
  const Text* text = object.AsText();
  const bool indexed =
      list != nullptr && list->kind != List::Kind::kGenerator && list->kind != List::Kind::kView;
  if (text == nullptr && !indexed) {
    if (object.IsUndefined()) return GetItem(workspace, object, {});
    return Undefined{};
  }
  const std::size_t size = text != nullptr ? CharactersIn(text->bytes()) : list->items.size();
  const auto range = RangeOf(workspace, start, stop, step, size);
  if (!range.has_value()) return {};
  if (text != nullptr) return SliceText(workspace, *text, *range, size);
  List* taken = workspace->NewList(list->kind);
  ForEachIn(*range, [&](std::size_t i) { return workspace->Push(taken, list->items[i]); });
  return taken;
}

}  // namespace foretoken::jinja
