#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

StoredText::~StoredText() {
  if (owner != nullptr) owner->Refund(Workspace::Footprint(text));
}

const std::string* Value::UndefinedName() const {
  const Undefined* undefined = std::get_if<Undefined>(&data_);
  return undefined == nullptr ? nullptr : undefined->name;
}

const Text* Value::AsText() const {
  const String* string = std::get_if<String>(&data_);
  return string == nullptr ? nullptr : &(*string)->text;
}

bool Value::IsSafe() const {
  const String* string = std::get_if<String>(&data_);
  return string != nullptr && (*string)->is_safe;
}

std::optional<std::int64_t> Value::Integer() const {
  if (const auto* integer = std::get_if<std::int64_t>(&data_)) return *integer;
  if (const bool* flag = AsBool()) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::Number() const {
  if (const double* number = AsFloat()) return *number;
  if (const auto integer = Integer()) return static_cast<double>(*integer);
  return std::nullopt;
}

bool Value::IsCallable() const {
  return AsMacro() != nullptr || AsMethod() != nullptr || AsFunction() != nullptr ||
         AsLoop() != nullptr;
}

bool Value::IsSame(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (const auto* string = std::get_if<String>(&data_)) {
    return *string == std::get<String>(other.data_);
  }
  if (const auto* number = std::get_if<double>(&data_)) {
    return *number == std::get<double>(other.data_);
  }
  if (const auto integer = Integer()) return integer == other.Integer();
  if (IsUndefined() || IsNone()) return true;
  return AsList() == other.AsList() && AsDict() == other.AsDict() &&
         AsNamespace() == other.AsNamespace() && AsMacro() == other.AsMacro() &&
         AsLoop() == other.AsLoop() && AsMethod() == other.AsMethod() &&
         AsFunction() == other.AsFunction();
}

std::string_view Value::TypeName() const {
  if (const List* list = AsList()) {
    constexpr std::string_view kNames[] = {"list", "tuple", "generator", "dict view", "range"};
    return kNames[static_cast<std::size_t>(list->kind)];
  }
  constexpr std::string_view kNames[] = {"undefined", "None",   "bool",    "int",       "float",
                                         "str",       "list",   "dict",    "namespace", "macro",
                                         "loop",      "method", "function"};
  return kNames[data_.index()];
}

std::string KeyOfText(std::string_view bytes) { return fmt::format("s{}", bytes); }

namespace {

constexpr int kDeepestKey = 32;

std::optional<std::string> KeyOf(const Value& key, int depth) {
  if (const Text* text = key.AsText()) return KeyOfText(text->bytes());
  if (const auto integer = key.Integer()) return fmt::format("i{}", *integer);
  if (const double* number = key.AsFloat()) {
    constexpr double kExact = 9007199254740992;  // 2^53
    if (std::trunc(*number) == *number && std::abs(*number) <= kExact) {
      return fmt::format("i{}", static_cast<std::int64_t>(*number));
    }
    return fmt::format("f{}", *number);
  }
  if (key.IsNone()) return "n";
  const List* list = key.AsList();
  if (list == nullptr || list->kind != List::Kind::kTuple) return std::nullopt;
  if (depth == kDeepestKey) return std::nullopt;
  std::string all = "t";
  for (const Value& item : list->items) {
    const auto part = KeyOf(item, depth + 1);
    if (!part.has_value()) return std::nullopt;
    all += fmt::format("{}:{}", part->size(), *part);
  }
  return all;
}

}  // namespace

std::optional<std::string> KeyOf(const Value& key) { return KeyOf(key, 0); }

const Value* Dict::FindKey(const std::string& key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::Find(std::string_view key) const { return FindKey(KeyOfText(key)); }

bool Dict::Set(std::string key_text, Value key, Value value) {
  const auto [place, is_new] = places_.emplace(std::move(key_text), entries.size());
  if (is_new) {
    entries.emplace_back(std::move(key), std::move(value));
  } else {
    entries[place->second].second = std::move(value);
  }
  return is_new;
}

void Dict::Remove(const std::string& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  const std::size_t place = found->second;
  places_.erase(found);
  entries.erase(entries.begin() + place);
  for (auto& other : places_) {
    if (other.second > place) --other.second;
  }
}

const Value* Namespace::Find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(values, [name](const auto& entry) { return entry.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

void Namespace::Set(std::string_view name, Value value) {
  for (auto& entry : values) {
    if (entry.first == name) {
      entry.second = std::move(value);
      return;
    }
  }
  values.emplace_back(name, std::move(value));
}

}  // namespace foretoken::jinja
