#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/objects.h"
#include "text/jinja/operations.h"
#include "text/jinja/value.h"

namespace foretoken::jinja {

// A template as a tree. Its nodes live in a SyntaxTree, point at each other and never change.

struct Expression;
struct Statement;
using Body = std::vector<const Statement*>;
/// Each name is there once: equal ones have the same address.
using Name = const std::string*;

// Expressions.

struct ConstantExpression {
  Value value;
};
struct NameExpression {
  Name name;
};
struct ListExpression {
  bool is_tuple;
  std::vector<const Expression*> items;
};
struct DictExpression {
  std::vector<std::pair<const Expression*, const Expression*>> entries;
};
/// object.name
struct AttributeExpression {
  const Expression* object;
  Name name;
};
/// object[key]
struct ItemExpression {
  const Expression* object;
  const Expression* key;
};
/// object[start:stop:step]; null: not given.
struct SliceExpression {
  const Expression* object;
  const Expression* start;
  const Expression* stop;
  const Expression* step;
};
struct CallArguments {
  std::vector<const Expression*> positional;
  std::vector<std::pair<std::string, const Expression*>> named;
  const Expression* list = nullptr;  ///< *list
  const Expression* dict = nullptr;  ///< **dict
};
struct CallExpression {
  const Expression* callee;
  CallArguments arguments;
};
/// input|name(arguments)
struct FilterExpression {
  const Expression* input;  ///< Null: the text of the block.
  std::string name;
  FilterBody body;  ///< Null: there is no such filter.
  CallArguments arguments;
};
/// input is name(arguments)
struct TestExpression {
  const Expression* input;
  std::string name;
  TestBody body;  ///< Null: there is no such test.
  CallArguments arguments;
};
struct UnaryExpression {
  enum class Kind { kNot, kNegative, kPositive };
  Kind kind;
  const Expression* operand;
};
struct BinaryExpression {
  Operator operation;
  const Expression* left;
  const Expression* right;
};
/// first < second < ...
struct CompareExpression {
  const Expression* first;
  std::vector<std::pair<Comparison, const Expression*>> others;
};
/// a ~ b ~ ...
struct ConcatExpression {
  std::vector<const Expression*> parts;
};
/// and, or
struct LogicExpression {
  bool is_or;
  const Expression* left;
  const Expression* right;
};
/// then if test else otherwise
struct ConditionalExpression {
  const Expression* test;
  const Expression* then;
  const Expression* otherwise;  ///< Null: undefined.
};

struct Expression {
  int line;
  std::variant<ConstantExpression, NameExpression, ListExpression, DictExpression,
               AttributeExpression, ItemExpression, SliceExpression, CallExpression,
               FilterExpression, TestExpression, UnaryExpression, BinaryExpression,
               CompareExpression, ConcatExpression, LogicExpression, ConditionalExpression>
      form;
};

// Statements.

/// What is assigned to: a name, a name's attribute, or several of them.
struct Target {
  Name name = nullptr;    ///< Null: the parts.
  std::string attribute;  ///< Empty: the name itself.
  std::vector<Target> parts;
};

struct TextStatement {
  Value text;
};
struct PrintStatement {
  const Expression* value;
};
struct IfStatement {
  struct Branch {
    const Expression* test;
    Body body;
  };
  std::vector<Branch> branches;
  Body otherwise;
};
struct ForStatement {
  Target target;
  const Expression* iterable;
  const Expression* filter;  ///< Null: every item.
  bool is_recursive;
  Name loop;  ///< The name `loop`.
  Body body;
  Body otherwise;
};
/// {% break %}, {% continue %}
struct JumpStatement {
  bool is_break;
};
struct SetStatement {
  Target target;
  const Expression* value;
};
/// {% set name | filter %} ... {% endset %}
struct SetBlockStatement {
  Target target;
  const Expression* filter;  ///< Null: none.
  Body body;
};
struct Parameter {
  Name name;
  const Expression* otherwise;  ///< Null: undefined.
};
/// What a macro or the body of a call block is made of.
struct MacroCode {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  // Names that hold what the parameters do not take; null where the body does not use them.
  Name caller = nullptr;
  Name extra_positional = nullptr;  ///< varargs
  Name extra_named = nullptr;       ///< kwargs
};
struct MacroStatement {
  Name name;
  MacroCode code;
};
struct CallBlockStatement {
  const Expression* call;  ///< A CallExpression.
  MacroCode code;
};
struct FilterBlockStatement {
  const Expression* filter;
  Body body;
};
/// {% with a = 1 %}, and blocks that only have names of their own ({% generation %}).
struct WithStatement {
  std::vector<std::pair<Target, const Expression*>> values;
  Body body;
};

struct Statement {
  int line;
  std::variant<TextStatement, PrintStatement, IfStatement, ForStatement, JumpStatement,
               SetStatement, SetBlockStatement, MacroStatement, CallBlockStatement,
               FilterBlockStatement, WithStatement>
      form;
};

struct SyntaxTree {
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
  std::unordered_set<std::string> names;
  Body body;

  Name NameOf(std::string_view name) { return &*names.emplace(name).first; }
};

}  // namespace foretoken::jinja
