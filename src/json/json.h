#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"

namespace foretoken {

/// A JSON value: null, a boolean, a number (whole and signed, whole and unsigned, or with a
/// fraction), a string, an array, or an object, whose members keep their order. It is used as a
/// container, so its functions have the names that containers give theirs.
///
/// Reading what is not there, or as what it is not, throws Json::Error: who reads what others wrote
/// asks first. Const functions may be called by several threads at once.
///
/// This header is in a hundred files, so it includes little, and what can be is in json.cc. The
/// header of nlohmann-json, which parses (parse_json.cc), took 59 % of a build's time.
class Json {
 public:
  class Error : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };
  enum class Kind : std::uint8_t {
    kNull,
    kBoolean,
    kInteger,   ///< Negative numbers, and what was assigned from a signed number.
    kUnsigned,  ///< Whole numbers of a text.
    kFloat,
    kString,
    kArray,
    kObject,
    kDiscarded  ///< A text that was no JSON.
  };
  using Member = std::pair<std::string, Json>;
  struct Item;
  template <bool kConst>
  class Iterator;
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;
  using value_type = Json;

  Json() noexcept : kind_(Kind::kNull) { data_.integer = 0; }
  Json(std::nullptr_t) noexcept : Json() {}
  Json(std::same_as<bool> auto value) noexcept : kind_(Kind::kBoolean) { data_.boolean = value; }
  template <std::signed_integral T>
  Json(T value) noexcept : kind_(Kind::kInteger) {
    data_.integer = value;
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value)
  noexcept : kind_(Kind::kUnsigned) { data_.whole = value; }
  template <std::floating_point T>
  Json(T value) noexcept : kind_(Kind::kFloat) {
    data_.number = static_cast<double>(value);
  }
  Json(std::string value);
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  /// Items that are all a name and a value make an object, others an array.
  Json(std::initializer_list<Item> items);
  /// The values of any container.
  template <typename T>
  requires(!std::convertible_to<const T&, std::string_view> && !std::same_as<T, Json> &&
           requires(const T& values) {
             values.begin();
             values.end();
           }) Json(const T& values)
      : Json(array()) {
    for (const auto& value : values) push_back(value);
  }
  template <typename A, typename B>
  Json(const std::pair<A, B>& pair) : Json(array({pair.first, pair.second})) {}
  template <typename T>
  Json(const std::map<std::string, T>& values) : Json(object()) {
    for (const auto& [name, value] : values) (*this)[name] = value;
  }

  Json(const Json& other);
  Json(Json&& other) noexcept : kind_(other.kind_), data_(other.data_) {
    other.kind_ = Kind::kNull;
  }
  Json& operator=(Json other) noexcept {
    swap(other);
    return *this;
  }
  ~Json() {
    if (kind_ >= Kind::kString) Free();
  }
  void swap(Json& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
  }

  /// A discarded value where the text is none, and then in `error` why. Of members with one name
  /// the last counts, in the place of the first.
  static Json Parse(std::string_view text, std::string* error = nullptr);
  static Json Parse(std::istream& text);
  static Json Parse(std::istream&& text) { return Parse(text); }

  static Json array(std::initializer_list<Item> items = {});
  static Json object(std::initializer_list<Item> items = {});
  static Json Discarded();

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_boolean() const { return kind_ == Kind::kBoolean; }
  bool is_number() const { return kind_ >= Kind::kInteger && kind_ <= Kind::kFloat; }
  bool is_number_integer() const { return kind_ == Kind::kInteger || kind_ == Kind::kUnsigned; }
  bool is_number_unsigned() const { return kind_ == Kind::kUnsigned; }
  bool is_number_float() const { return kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_structured() const { return is_array() || is_object(); }
  bool is_discarded() const { return kind_ == Kind::kDiscarded; }
  /// "null", "boolean", "number", "string", "array", "object" or "discarded".
  const char* type_name() const;

  /// The value as a T: a boolean, a number of any type, a string, or a vector, array or map of
  /// these.
  template <typename T>
  T get() const;
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, char>) operator T() const {
    return get<T>();
  }
  operator std::string() const { return text(); }
  template <typename T>
  operator std::vector<T>() const {
    return get<std::vector<T>>();
  }
  template <typename T, std::size_t kCount>
  operator std::array<T, kCount>() const {
    return get<std::array<T, kCount>>();
  }
  const std::string& text() const;
  std::string& text();

  /// How many elements or members it has; 0 for null, 1 for other values.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  // Elements of an array. Those that change it make an array of null.
  template <std::integral T>
  const Json& operator[](T index) const {
    return At(Size(index));
  }
  template <std::integral T>
  Json& operator[](T index) {
    return At(Size(index));
  }
  const Json& at(std::integral auto index) const { return (*this)[index]; }
  Json& at(std::integral auto index) { return (*this)[index]; }
  const Json& front() const;
  Json& front();
  const Json& back() const;
  Json& back();
  void push_back(Json value);
  iterator insert(const_iterator before, Json value);
  template <typename T>
  Json& emplace_back(T&& value) {
    push_back(Json(std::forward<T>(value)));
    return back();
  }

  // Members of an object. Those that change it make an object of null.
  /// Null where there is no such member.
  const Json& operator[](std::string_view name) const;
  /// Adds the member where it is not there.
  Json& operator[](std::string_view name);
  const Json& operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  Json& operator[](const char* name) { return (*this)[std::string_view(name)]; }
  const Json& operator[](const std::string& name) const { return (*this)[std::string_view(name)]; }
  Json& operator[](const std::string& name) { return (*this)[std::string_view(name)]; }
  const Json& at(std::string_view name) const;
  Json& at(std::string_view name);
  bool contains(std::string_view name) const { return FindMember(name) != nullptr; }
  std::size_t count(std::string_view name) const { return contains(name) ? 1 : 0; }
  /// end() where there is none, or this is no object.
  const_iterator find(std::string_view name) const;
  iterator find(std::string_view name);
  /// The member, or `otherwise` where there is none.
  template <typename T>
  T value(std::string_view name, const T& otherwise) const;
  std::string value(std::string_view name, const char* otherwise) const;
  /// All members; none where this is no object.
  const std::vector<Member>& items() const;
  std::vector<Member>& items();
  /// Takes over all members of another object.
  void update(const Json& other);
  /// Puts the members of this object and of all in it in the order of their names.
  void SortMembers();
  /// Adds a member; false, and nothing, where there is one of this name.
  bool emplace(std::string_view name, Json value);
  /// Returns how many went: 0 or 1.
  std::size_t erase(std::string_view name);
  std::size_t erase(const char* name) { return erase(std::string_view(name)); }
  std::size_t erase(const std::string& name) { return erase(std::string_view(name)); }

  void erase(std::size_t index);
  iterator erase(const_iterator at);
  void clear();

  const_iterator begin() const;
  const_iterator end() const;
  iterator begin();
  iterator end();

  /// What an RFC 6901 pointer ("/a/0") names; null where that is nothing.
  const Json* Find(std::string_view pointer) const;
  /// The same, where what is not there is added.
  Json& Place(std::string_view pointer);

  /// The value as a text, on one line or, with an indent of so many spaces, on several. Bytes that
  /// are no UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;
  /// The same on one line in ASCII.
  std::string DumpAscii() const;

  /// Numbers are compared by value, objects whatever the order of their members.
  friend bool operator==(const Json& a, const Json& b) { return a.Equals(b); }
  template <typename T>
  requires(std::is_arithmetic_v<T>) friend bool operator==(const Json& a, T b) {
    return a.Equals(Json(b));
  }
  template <typename T>
  requires(std::is_arithmetic_v<T>) friend std::partial_ordering operator<=>(const Json& a, T b) {
    return a.AsDouble() <=> static_cast<double>(b);
  }
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  friend class JsonBuilder;
  struct Object;
  union Data {
    bool boolean;
    std::int64_t integer;
    std::uint64_t whole;
    double number;
    std::string* text;
    std::vector<Json>* array;
    Object* object;
  };

  template <typename T>
  struct Reader;

  [[noreturn]] void Refuse(const char* wanted) const;
  void Free() noexcept;
  bool Equals(const Json& other) const;
  bool AsBoolean() const;
  std::int64_t AsInteger() const;
  std::uint64_t AsUnsigned() const;
  double AsDouble() const;
  const Json& At(std::size_t index) const;
  Json& At(std::size_t index);
  std::vector<Json>& Elements();
  const std::vector<Json>& Elements() const;
  const Json* FindMember(std::string_view name) const;

  Kind kind_;
  Data data_;
};

/// An item of a list of initialisers: what Json is made of, moved from there.
struct Json::Item {
  template <typename T>
  requires std::constructible_from<Json, T&&> Item(T&& from) : value(std::forward<T>(from)) {}
  Item(std::initializer_list<Item> items) : value(items) {}

  mutable Json value;
};

/// Walks elements of an array or values of an object; `key()` is a member's name.
template <bool kConst>
class Json::Iterator {
 public:
  using Value = std::conditional_t<kConst, const Json, Json>;
  using Pair = std::conditional_t<kConst, const Member, Member>;
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using pointer = Value*;
  using reference = Value&;

  Iterator() = default;
  explicit Iterator(Value* element) : element_(element) {}
  explicit Iterator(Pair* member) : member_(member) {}
  template <bool kOther>
  requires(kConst && !kOther) Iterator(const Iterator<kOther>& other)
      : element_(other.element_), member_(other.member_) {}

  Value& operator*() const { return member_ == nullptr ? *element_ : member_->second; }
  Value* operator->() const { return &**this; }
  Value& operator[](std::ptrdiff_t n) const { return *(*this + n); }
  const std::string& key() const { return member_->first; }
  Value& value() const { return **this; }

  Iterator& operator+=(std::ptrdiff_t n) {
    if (member_ != nullptr) {
      member_ += n;
    } else {
      element_ += n;
    }
    return *this;
  }
  Iterator& operator-=(std::ptrdiff_t n) { return *this += -n; }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this -= 1; }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  Iterator operator--(int) {
    Iterator before = *this;
    --*this;
    return before;
  }
  friend Iterator operator+(Iterator it, std::ptrdiff_t n) { return it += n; }
  friend Iterator operator+(std::ptrdiff_t n, Iterator it) { return it += n; }
  friend Iterator operator-(Iterator it, std::ptrdiff_t n) { return it -= n; }
  friend std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) {
    return a.member_ != nullptr ? a.member_ - b.member_ : a.element_ - b.element_;
  }
  friend bool operator==(const Iterator&, const Iterator&) = default;
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return (a - b) <=> 0; }

 private:
  friend class Json;
  template <bool kOther>
  friend class Iterator;

  Value* element_ = nullptr;
  Pair* member_ = nullptr;  // Null in an array.
};

inline Json::const_iterator Json::find(std::string_view name) const {
  return const_cast<Json*>(this)->find(name);
}
inline Json::const_iterator Json::begin() const { return const_cast<Json*>(this)->begin(); }
inline Json::const_iterator Json::end() const { return const_cast<Json*>(this)->end(); }

// How a value is read as a T.
template <typename T>
struct Json::Reader {
  static T Read(const Json& json) {
    if constexpr (std::same_as<T, bool>) {
      return json.AsBoolean();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(json.AsDouble());
    } else if constexpr (std::unsigned_integral<T>) {
      return static_cast<T>(json.AsUnsigned());
    } else if constexpr (std::same_as<T, Json>) {
      return json;
    } else {
      static_assert(std::signed_integral<T>);
      return static_cast<T>(json.AsInteger());
    }
  }
};
template <>
struct Json::Reader<std::string> {
  static const std::string& Read(const Json& json) { return json.text(); }
};
template <typename T>
struct Json::Reader<std::vector<T>> {
  static std::vector<T> Read(const Json& json) {
    if (!json.is_array()) json.Refuse("an array");
    std::vector<T> values;
    values.reserve(json.size());
    for (const Json& element : json) values.push_back(element.get<T>());
    return values;
  }
};
template <typename T, std::size_t kCount>
struct Json::Reader<std::array<T, kCount>> {
  static std::array<T, kCount> Read(const Json& json) {
    std::array<T, kCount> values;
    for (std::size_t i = 0; i < kCount; ++i) values[i] = json.at(i).template get<T>();
    return values;
  }
};
template <typename T>
struct Json::Reader<std::map<std::string, T>> {
  static std::map<std::string, T> Read(const Json& json) {
    if (!json.is_object()) json.Refuse("an object");
    std::map<std::string, T> values;
    for (const Member& member : json.items()) values.emplace(member.first, member.second.get<T>());
    return values;
  }
};

template <typename T>
T Json::get() const {
  return Reader<T>::Read(*this);
}
template <typename T>
T Json::value(std::string_view name, const T& otherwise) const {
  const Json* found = FindMember(name);
  return found == nullptr ? otherwise : found->get<T>();
}

}  // namespace foretoken
