#pragma once

#include <vector>

#include "text/jinja/syntax/syntax.h"
#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// Evaluates one template once.
class Interpreter {
 public:
  /// All outlive the interpreter. `variables` are what the template finds by name.
  Interpreter(const SyntaxTree& tree, const Dict* variables, Workspace* workspace)
      : tree_(tree), variables_(variables), workspace_(workspace) {}

  /// Appends what the template makes to `out`; errors are left in the workspace.
  void Run(TextBuilder* out);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // Statements: what they print goes to `out_`.
  Flow Execute(const Body& body, Scope* scope);
  Flow Execute(const Statement& statement, Scope* scope);
  Flow Do(const TextStatement& statement, Scope* scope);
  Flow Do(const PrintStatement& statement, Scope* scope);
  Flow Do(const IfStatement& statement, Scope* scope);
  Flow Do(const ForStatement& statement, Scope* scope);
  Flow Do(const JumpStatement& statement, Scope* scope);
  Flow Do(const SetStatement& statement, Scope* scope);
  Flow Do(const SetBlockStatement& statement, Scope* scope);
  Flow Do(const MacroStatement& statement, Scope* scope);
  Flow Do(const CallBlockStatement& statement, Scope* scope);
  Flow Do(const FilterBlockStatement& statement, Scope* scope);
  Flow Do(const WithStatement& statement, Scope* scope);

  void Print(const Value& value);
  /// What `body` prints in a scope of its own, as a string.
  Value Capture(const Body& body, Scope* scope, Flow* flow);
  void Assign(const Target& target, const Value& value, Scope* scope);
  /// Goes through `iterable`. `depth` counts a recursive loop's calls of itself.
  Flow RunLoop(const ForStatement& statement, const Value& iterable, Scope* scope, int depth);
  bool KeepItems(const ForStatement& statement, Scope* scope, std::vector<Value>* items);

  // Expressions.
  Value Evaluate(const Expression* expression, Scope* scope);
  Value Of(const ConstantExpression& form, Scope* scope);
  Value Of(const NameExpression& form, Scope* scope);
  Value Of(const ListExpression& form, Scope* scope);
  Value Of(const DictExpression& form, Scope* scope);
  Value Of(const AttributeExpression& form, Scope* scope);
  Value Of(const ItemExpression& form, Scope* scope);
  Value Of(const SliceExpression& form, Scope* scope);
  Value Of(const CallExpression& form, Scope* scope);
  Value Of(const FilterExpression& form, Scope* scope);
  Value Of(const TestExpression& form, Scope* scope);
  Value Of(const UnaryExpression& form, Scope* scope);
  Value Of(const BinaryExpression& form, Scope* scope);
  Value Of(const CompareExpression& form, Scope* scope);
  Value Of(const ConcatExpression& form, Scope* scope);
  Value Of(const LogicExpression& form, Scope* scope);
  Value Of(const ConditionalExpression& form, Scope* scope);

  /// A chain of filters, the innermost of which takes `text` where it has no input of its own.
  Value Filtered(const Expression* filter, const Value* text, Scope* scope);
  Value Filtered(const FilterExpression& form, const Value* text, Scope* scope);
  Arguments ArgumentsOf(const CallArguments& arguments, Scope* scope);
  Value Call(const Value& callee, Arguments arguments);
  Value CallMacro(const Macro& macro, Arguments arguments);
  void BindParameters(const Macro& macro, Arguments* arguments, Scope* scope);
  void BindRest(const Macro& macro, std::size_t taken, Arguments* arguments, Scope* scope);
  Value CallLoop(Loop* loop, const Arguments& arguments);

  const SyntaxTree& tree_;
  const Dict* variables_;
  Workspace* workspace_;
  TextBuilder* out_ = nullptr;
};

}  // namespace foretoken::jinja
