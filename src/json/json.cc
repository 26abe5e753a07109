#include "json/json.h"

#include <algorithm>
#include <ostream>

#include "json/json_members.h"

namespace foretoken {
namespace {

const Json kNullJson;

std::string PointerToken(std::string_view token) {
  std::string name;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      name += token[i];
      continue;
    }
    const char next = i + 1 < token.size() ? token[i + 1] : '\0';
    if (next != '0' && next != '1') throw Json::Error("a pointer has ~ before neither 0 nor 1");
    name += next == '0' ? '~' : '/';
    ++i;
  }
  return name;
}

// Takes the next token off a pointer.
std::string NextToken(std::string_view* pointer) {
  if (!pointer->starts_with('/')) throw Json::Error("a pointer does not begin with /");
  pointer->remove_prefix(1);
  const std::string_view token = pointer->substr(0, pointer->find('/'));
  pointer->remove_prefix(token.size());
  return PointerToken(token);
}

// The index that a token names; the largest number where it is none.
std::size_t IndexOf(const std::string& token) {
  const bool number = !token.empty() && token.size() < 10 &&
                      token.find_first_not_of("0123456789") == std::string::npos &&
                      (token == "0" || token[0] != '0');
  return number ? std::stoul(token) : static_cast<std::size_t>(-1);
}

}  // namespace

Json::Json(std::string value) : kind_(Kind::kString) {
  data_.text = new std::string(std::move(value));
}

Json::Json(std::initializer_list<Item> items) : Json() {
  const bool is_object = std::ranges::all_of(items, [](const Item& item) {
    return item.value.is_array() && item.value.size() == 2 && item.value[0].is_string();
  });
  if (!is_object) {
    *this = array(items);
    return;
  }
  *this = object();
  data_.object->members.reserve(items.size());
  for (const Item& item : items) (*this)[item.value[0].text()] = std::move(item.value[1]);
}

Json::Json(const Json& other) : kind_(other.kind_), data_(other.data_) {
  switch (kind_) {
    case Kind::kString:
      data_.text = new std::string(*other.data_.text);
      break;
    case Kind::kArray:
      data_.array = new std::vector<Json>(*other.data_.array);
      break;
    case Kind::kObject:
      data_.object = new Object(*other.data_.object);
      break;
    default:
      break;
  }
}

// Without recursion: a text may hold a million brackets within each other.
void Json::Free() noexcept {
  if (kind_ == Kind::kString) delete data_.text;
  if (!is_structured()) return;
  std::vector<Json> left;
  const auto take_from = [&left](Json& json) {
    if (json.is_array()) {
      for (Json& element : *json.data_.array) {
        if (element.is_structured() && !element.empty()) left.push_back(std::move(element));
      }
    } else {
      for (Member& member : json.data_.object->members) {
        if (member.second.is_structured() && !member.second.empty()) {
          left.push_back(std::move(member.second));
        }
      }
    }
  };
  take_from(*this);
  while (!left.empty()) {
    Json last = std::move(left.back());
    left.pop_back();
    take_from(last);
  }
  if (kind_ == Kind::kArray) {
    delete data_.array;
  } else {
    delete data_.object;
  }
}

Json Json::array(std::initializer_list<Item> items) {
  Json json;
  json.data_.array = new std::vector<Json>();
  json.kind_ = Kind::kArray;
  json.data_.array->reserve(items.size());
  for (const Item& item : items) json.data_.array->push_back(std::move(item.value));
  return json;
}

Json Json::object(std::initializer_list<Item> items) {
  if (items.size() > 0) {
    Json json(items);
    if (!json.is_object()) throw Error("an object is made of names and values");
    return json;
  }
  Json json;
  json.data_.object = new Object();
  json.kind_ = Kind::kObject;
  return json;
}

Json Json::Discarded() {
  Json json;
  json.kind_ = Kind::kDiscarded;
  return json;
}

const char* Json::type_name() const {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "boolean";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
    case Kind::kDiscarded:
      return "discarded";
    default:
      return "number";
  }
}

void Json::Refuse(const char* wanted) const {
  throw Error(std::string("a JSON value of type ") + type_name() + " is read as " + wanted);
}

bool Json::AsBoolean() const {
  if (kind_ != Kind::kBoolean) Refuse("a boolean");
  return data_.boolean;
}

std::int64_t Json::AsInteger() const {
  switch (kind_) {
    case Kind::kBoolean:
      return data_.boolean ? 1 : 0;
    case Kind::kInteger:
      return data_.integer;
    case Kind::kUnsigned:
      return data_.whole;
    case Kind::kFloat:
      return data_.number;
    default:
      Refuse("a number");
  }
}

std::uint64_t Json::AsUnsigned() const {
  if (kind_ == Kind::kUnsigned) return data_.whole;
  if (kind_ == Kind::kFloat) return static_cast<std::uint64_t>(data_.number);
  return static_cast<std::uint64_t>(AsInteger());
}

double Json::AsDouble() const {
  switch (kind_) {
    case Kind::kFloat:
      return data_.number;
    case Kind::kUnsigned:
      return static_cast<double>(data_.whole);
    default:
      return static_cast<double>(AsInteger());
  }
}

const std::string& Json::text() const {
  if (kind_ != Kind::kString) Refuse("a string");
  return *data_.text;
}

std::string& Json::text() {
  if (kind_ != Kind::kString) Refuse("a string");
  return *data_.text;
}

std::size_t Json::size() const {
  switch (kind_) {
    case Kind::kNull:
    case Kind::kDiscarded:
      return 0;
    case Kind::kArray:
      return data_.array->size();
    case Kind::kObject:
      return data_.object->members.size();
    default:
      return 1;
  }
}

std::vector<Json>& Json::Elements() {
  if (kind_ == Kind::kNull) *this = array();
  if (kind_ != Kind::kArray) Refuse("an array");
  return *data_.array;
}

const std::vector<Json>& Json::Elements() const {
  if (kind_ != Kind::kArray) Refuse("an array");
  return *data_.array;
}

const Json& Json::At(std::size_t index) const {
  const std::vector<Json>& elements = Elements();
  if (index >= elements.size()) throw Error("a JSON array has no element " + std::to_string(index));
  return elements[index];
}

Json& Json::At(std::size_t index) { return const_cast<Json&>(std::as_const(*this).At(index)); }

const Json& Json::front() const { return *begin(); }
Json& Json::front() { return *begin(); }
const Json& Json::back() const { return *(end() - 1); }
Json& Json::back() { return *(end() - 1); }
void Json::push_back(Json value) { Elements().push_back(std::move(value)); }

Json::iterator Json::insert(const_iterator before, Json value) {
  const std::ptrdiff_t place = before - begin();
  std::vector<Json>& elements = Elements();
  elements.insert(elements.begin() + place, std::move(value));
  return begin() + place;
}

const Json* Json::FindMember(std::string_view name) const {
  return kind_ == Kind::kObject ? data_.object->Find(name) : nullptr;
}

const Json& Json::operator[](std::string_view name) const {
  const Json* found = FindMember(name);
  return found == nullptr ? kNullJson : *found;
}

Json& Json::operator[](std::string_view name) {
  if (kind_ == Kind::kNull) *this = object();
  if (kind_ != Kind::kObject) Refuse("an object");
  if (const Json* found = FindMember(name); found != nullptr) return const_cast<Json&>(*found);
  return data_.object->members.emplace_back(std::string(name), Json()).second;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = FindMember(name);
  if (found == nullptr) throw Error("a JSON object has no member " + std::string(name));
  return *found;
}

Json& Json::at(std::string_view name) { return const_cast<Json&>(std::as_const(*this).at(name)); }

Json::iterator Json::find(std::string_view name) {
  if (kind_ != Kind::kObject) return end();
  const Member* const found = data_.object->FindMember(name);
  return found == nullptr ? end() : iterator(const_cast<Member*>(found));
}

std::string Json::value(std::string_view name, const char* otherwise) const {
  return value(name, std::string(otherwise));
}

const std::vector<Json::Member>& Json::items() const {
  static const std::vector<Member> kNone;
  return kind_ == Kind::kObject ? data_.object->members : kNone;
}

std::vector<Json::Member>& Json::items() {
  if (kind_ == Kind::kNull) *this = object();
  if (kind_ != Kind::kObject) Refuse("an object");
  return data_.object->members;
}

void Json::update(const Json& other) {
  for (const Member& member : other.items()) (*this)[member.first] = member.second;
}

void Json::SortMembers() {
  if (is_object()) {
    data_.object->by_name.clear();
    std::ranges::sort(data_.object->members, {}, &Member::first);
  }
  if (!is_structured()) return;
  for (Json& inner : *this) inner.SortMembers();
}

bool Json::emplace(std::string_view name, Json value) {
  if (contains(name)) return false;
  (*this)[name] = std::move(value);
  return true;
}

std::size_t Json::erase(std::string_view name) {
  const iterator found = find(name);
  if (found == end()) return 0;
  erase(found);
  return 1;
}

void Json::erase(std::size_t index) { erase(begin() + index); }

Json::iterator Json::erase(const_iterator at) {
  const std::ptrdiff_t place = at - begin();
  if (kind_ == Kind::kObject) {
    data_.object->by_name.clear();
    data_.object->members.erase(data_.object->members.begin() + place);
  } else {
    Elements().erase(Elements().begin() + place);
  }
  return begin() + place;
}

void Json::clear() {
  if (is_array()) *this = array();
  if (is_object()) *this = object();
  if (is_string()) data_.text->clear();
}

Json::iterator Json::begin() {
  if (kind_ == Kind::kArray) return iterator(data_.array->data());
  if (kind_ == Kind::kObject) return iterator(data_.object->members.data());
  return iterator(is_null() ? nullptr : this);  // A value that has no others is its only element.
}

Json::iterator Json::end() { return begin() + size(); }

const Json* Json::Find(std::string_view pointer) const {
  const Json* at = this;
  while (!pointer.empty() && at != nullptr) {
    const std::string token = NextToken(&pointer);
    if (at->is_array()) {
      const std::size_t index = IndexOf(token);
      at = index < at->size() ? &(*at)[index] : nullptr;
    } else {
      at = at->FindMember(token);
    }
  }
  return at;
}

Json& Json::Place(std::string_view pointer) {
  Json* at = this;
  while (!pointer.empty()) {
    const std::string token = NextToken(&pointer);
    at = at->is_array() ? &(*at)[IndexOf(token)] : &(*at)[token];
  }
  return *at;
}

bool Json::Equals(const Json& other) const {
  if (is_number() && other.is_number()) {
    if (is_number_float() || other.is_number_float()) return AsDouble() == other.AsDouble();
    const bool signs = (kind_ == Kind::kInteger && data_.integer < 0) ==
                       (other.kind_ == Kind::kInteger && other.data_.integer < 0);
    return signs && AsUnsigned() == other.AsUnsigned();
  }
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::kBoolean:
      return data_.boolean == other.data_.boolean;
    case Kind::kString:
      return *data_.text == *other.data_.text;
    case Kind::kArray:
      return *data_.array == *other.data_.array;
    case Kind::kObject:
      return size() == other.size() && std::ranges::all_of(items(), [&](const Member& member) {
               const Json* same = other.FindMember(member.first);
               return same != nullptr && member.second == *same;
             });
    default:
      return kind_ != Kind::kDiscarded;
  }
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

}  // namespace foretoken
