#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/text.h"

namespace foretoken::jinja {

class Workspace;
class Value;
struct List;
struct Dict;
struct Namespace;
struct Macro;
struct Loop;
struct Method;
struct Function;

/// What a name or attribute that is not there stands for. It prints as nothing and is false; most
/// else with it is an error, which names it.
struct Undefined {
  const std::string* name = nullptr;  ///< Null: it has none. Kept by the template.
};

struct None {};

/// Characters on their own, never changed; the workspace that made it, if any, counts its bytes.
struct StoredText {
  StoredText(Text stored, Workspace* counted_by) : text(std::move(stored)), owner(counted_by) {}
  StoredText(const StoredText&) = delete;
  StoredText& operator=(const StoredText&) = delete;
  ~StoredText();

  Text text;
  Workspace* owner;
  /// The filters safe and escape were here: what is added to it with + is escaped.
  bool is_safe = false;
};
using String = std::shared_ptr<const StoredText>;

/// A value of Python, as far as templates see one. Lists and what else can be changed are handles:
/// the workspace of the rendering owns what they point to.
class Value {
 public:
  Value() = default;
  Value(Undefined value) : data_(value) {}          // NOLINT
  Value(None value) : data_(value) {}               // NOLINT
  Value(bool value) : data_(value) {}               // NOLINT
  Value(std::int64_t value) : data_(value) {}       // NOLINT
  Value(double value) : data_(value) {}             // NOLINT
  Value(String value) : data_(std::move(value)) {}  // NOLINT
  Value(List* value) : data_(value) {}              // NOLINT
  Value(Dict* value) : data_(value) {}              // NOLINT
  Value(Namespace* value) : data_(value) {}         // NOLINT
  Value(Macro* value) : data_(value) {}             // NOLINT
  Value(Loop* value) : data_(value) {}              // NOLINT
  Value(Method* value) : data_(value) {}            // NOLINT
  Value(const Function* value) : data_(value) {}    // NOLINT

  bool IsUndefined() const { return std::holds_alternative<Undefined>(data_); }
  bool IsNone() const { return std::holds_alternative<None>(data_); }
  bool IsBool() const { return std::holds_alternative<bool>(data_); }
  bool IsString() const { return std::holds_alternative<String>(data_); }

  /// The name of what is undefined; null where it is not, or has none.
  const std::string* UndefinedName() const;
  /// A boolean is no integer here; Integer() is for what Python takes both for.
  const bool* AsBool() const { return std::get_if<bool>(&data_); }
  const double* AsFloat() const { return std::get_if<double>(&data_); }
  const Text* AsText() const;
  /// Whether a string is safe: see StoredText.
  bool IsSafe() const;
  List* AsList() const { return Pointer<List*>(); }
  Dict* AsDict() const { return Pointer<Dict*>(); }
  Namespace* AsNamespace() const { return Pointer<Namespace*>(); }
  Macro* AsMacro() const { return Pointer<Macro*>(); }
  Loop* AsLoop() const { return Pointer<Loop*>(); }
  Method* AsMethod() const { return Pointer<Method*>(); }
  const Function* AsFunction() const { return Pointer<const Function*>(); }

  /// The number of an integer or a boolean.
  std::optional<std::int64_t> Integer() const;
  /// The number of an integer, a boolean or a float.
  std::optional<double> Number() const;
  bool IsInteger() const { return std::holds_alternative<std::int64_t>(data_); }
  bool IsNumber() const { return IsInteger() || IsBool() || AsFloat() != nullptr; }
  bool IsCallable() const;

  /// Whether both are handles of one object, or the same of what has no handle.
  bool IsSame(const Value& other) const;
  /// As Python calls the type: "str", "dict".
  std::string_view TypeName() const;

 private:
  template <typename Handle>
  Handle Pointer() const {
    const Handle* handle = std::get_if<Handle>(&data_);
    return handle == nullptr ? nullptr : *handle;
  }

  std::variant<Undefined, None, bool, std::int64_t, double, String, List*, Dict*, Namespace*,
               Macro*, Loop*, Method*, const Function*>
      data_;
};

/// Python's ordered collections. A generator can be gone through once; views (of a dict's keys,
/// values and items) and ranges cannot be indexed or are not lists, which `kind` tells.
struct List {
  enum class Kind { kList, kTuple, kGenerator, kView, kRange };

  Kind kind = Kind::kList;
  std::vector<Value> items;
};

/// Entries in the order in which their keys came.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;

  /// Null where `key` is absent.
  const Value* Find(std::string_view key) const;
  /// `key` as KeyOf made it.
  const Value* FindKey(const std::string& key) const;
  /// False: the key was there, and has the new value now.
  bool Set(std::string key_text, Value key, Value value);
  void Remove(const std::string& key);

 private:
  std::unordered_map<std::string, std::size_t> places_;  // By KeyOf.
};

/// What tells keys apart: equal for equal values, 1 and 1.0 and true among them. Nothing where
/// values of its type are no keys.
std::optional<std::string> KeyOf(const Value& key);
/// KeyOf a string of these bytes.
std::string KeyOfText(std::string_view bytes);

/// What `namespace()` makes: names that templates assign to.
struct Namespace {
  std::vector<std::pair<std::string, Value>> values;

  const Value* Find(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

}  // namespace foretoken::jinja
