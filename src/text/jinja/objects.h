#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace foretoken::jinja {

struct ForStatement;
struct MacroCode;
class Workspace;

/// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// What is built in, as functions of values. An error is left in the workspace.
using FunctionBody = Value (*)(Workspace*, Arguments*);
using FilterBody = Value (*)(Workspace*, const Value& input, Arguments*);
using TestBody = bool (*)(Workspace*, const Value& input, Arguments*);
using MethodBody = Value (*)(Workspace*, const Value& self, Arguments*);

/// A function that templates find by its name.
struct Function {
  std::string_view name;
  FunctionBody body;
};

/// A method, taken from a value without being called: `text.strip`.
struct Method {
  Value self;
  std::string_view name;
  MethodBody body;  ///< Null: Python has it, but not we.
};

/// Names and their values; names that it lacks are looked for in the scope around it. Names are
/// equal where their pointers are: the template keeps one of each.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<const std::string*, Value>> variables;
  bool captured = false;  ///< A macro remembers it: it must stay as it is.

  const Value* Find(const std::string* name) const {
    for (const auto& [known, value] : variables) {
      if (known == name) return &value;
    }
    return nullptr;
  }
  void Set(const std::string* name, Value value) {
    for (auto& [known, old] : variables) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    variables.emplace_back(name, std::move(value));
  }
};

/// A macro, or the body of a call block, with the scope in which it was defined.
struct Macro {
  const MacroCode* code = nullptr;
  Scope* scope = nullptr;
};

/// A loop on its way: what the name `loop` stands for.
struct Loop {
  const ForStatement* code = nullptr;
  Scope* scope = nullptr;  ///< Around the loop.
  std::vector<Value> items;
  std::size_t index = 0;
  int depth = 0;                 ///< How deep a recursive loop is, from 0.
  List* last_changed = nullptr;  ///< What changed() was last told; null: nothing.
};

}  // namespace foretoken::jinja
