#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {

void Interpreter::Run(TextBuilder* out) {
  out_ = out;
  Scope* scope = workspace_->BeginScope(nullptr);
  Execute(tree_.body, scope);
  out_ = nullptr;
}

Interpreter::Flow Interpreter::Execute(const Body& body, Scope* scope) {
  for (const Statement* statement : body) {
    const Flow flow = Execute(*statement, scope);
    if (flow != Flow::kNext || !workspace_->ok()) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Execute(const Statement& statement, Scope* scope) {
  Flow flow = Flow::kNext;
  workspace_->set_line(statement.line);
  if (workspace_->Enter()) {
    flow = std::visit([&](const auto& form) { return Do(form, scope); }, statement.form);
  }
  workspace_->Leave();
  return flow;
}

void Interpreter::Print(const Value& value) {
  AppendStr(value, out_);
  const std::size_t most = workspace_->limits().output;
  if (out_->text().size() > most) {
    workspace_->Fail("the text has more than {} bytes, which is the limit", most);
  }
}

Value Interpreter::Capture(const Body& body, Scope* scope, Flow* flow) {
  TextBuilder text(workspace_);
  TextBuilder* const outer = std::exchange(out_, &text);
  Scope* inner = workspace_->BeginScope(scope);
  *flow = Execute(body, inner);
  workspace_->EndScope(inner);
  out_ = outer;
  return text.Finish();
}

Interpreter::Flow Interpreter::Do(const TextStatement& statement, Scope*) {
  Print(statement.text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Do(const PrintStatement& statement, Scope* scope) {
  Print(Evaluate(statement.value, scope));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Do(const IfStatement& statement, Scope* scope) {
  for (const IfStatement::Branch& branch : statement.branches) {
    const bool taken = Truth(Evaluate(branch.test, scope));
    if (!workspace_->ok()) return Flow::kNext;
    if (taken) return Execute(branch.body, scope);
  }
  return Execute(statement.otherwise, scope);
}

Interpreter::Flow Interpreter::Do(const ForStatement& statement, Scope* scope) {
  return RunLoop(statement, Evaluate(statement.iterable, scope), scope, 0);
}

bool Interpreter::KeepItems(const ForStatement& statement, Scope* scope,
                            std::vector<Value>* items) {
  if (statement.filter == nullptr) return true;
  std::vector<Value> kept;
  for (Value& item : *items) {
    Scope* inner = workspace_->BeginScope(scope);
    Assign(statement.target, item, inner);
    if (Truth(Evaluate(statement.filter, inner))) kept.push_back(std::move(item));
    workspace_->EndScope(inner);
    if (!workspace_->ok()) return false;
  }
  *items = std::move(kept);
  return true;
}

Interpreter::Flow Interpreter::RunLoop(const ForStatement& statement, const Value& iterable,
                                       Scope* scope, int depth) {
  Loop* loop = workspace_->NewLoop();
  loop->code = &statement;
  loop->scope = scope;
  loop->depth = depth;
  if (!Iterate(workspace_, iterable, &loop->items)) return Flow::kNext;
  if (!KeepItems(statement, scope, &loop->items)) return Flow::kNext;
  const std::size_t bytes = loop->items.size() * sizeof(Value);
  if (!workspace_->Spend(bytes)) return Flow::kNext;
  for (; loop->index < loop->items.size(); ++loop->index) {
    Scope* inner = workspace_->BeginScope(scope);
    inner->Set(statement.loop, loop);
    Assign(statement.target, loop->items[loop->index], inner);
    const Flow flow = Execute(statement.body, inner);
    workspace_->EndScope(inner);
    if (!workspace_->ok() || flow == Flow::kBreak) break;
  }
  if (!loop->items.empty() || !workspace_->ok()) return Flow::kNext;
  Scope* inner = workspace_->BeginScope(scope);
  const Flow flow = Execute(statement.otherwise, inner);
  workspace_->EndScope(inner);
  return flow;
}

Interpreter::Flow Interpreter::Do(const JumpStatement& statement, Scope*) {
  return statement.is_break ? Flow::kBreak : Flow::kContinue;
}

void Interpreter::Assign(const Target& target, const Value& value, Scope* scope) {
  if (!workspace_->ok()) return;
  if (target.name != nullptr && target.attribute.empty()) return scope->Set(target.name, value);
  if (target.name != nullptr) {
    Namespace* names = Of(NameExpression{target.name}, scope).AsNamespace();
    if (names == nullptr) {
      workspace_->Fail("'{}' is no namespace, so nothing in it can be set", *target.name);
    } else if (workspace_->Spend(sizeof(Value))) {
      names->Set(target.attribute, value);
    }
    return;
  }
  std::vector<Value> items;
  if (!Iterate(workspace_, value, &items)) return;
  if (items.size() != target.parts.size()) {
    workspace_->Fail("{} values cannot be given to {} names", items.size(), target.parts.size());
    return;
  }
  for (std::size_t i = 0; i < items.size(); ++i) Assign(target.parts[i], items[i], scope);
}

Interpreter::Flow Interpreter::Do(const SetStatement& statement, Scope* scope) {
  Assign(statement.target, Evaluate(statement.value, scope), scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Do(const SetBlockStatement& statement, Scope* scope) {
  Flow flow = Flow::kNext;
  const Value text = Capture(statement.body, scope, &flow);
  const bool filtered = statement.filter != nullptr;
  Assign(statement.target, filtered ? Filtered(statement.filter, &text, scope) : text, scope);
  return flow;
}

Interpreter::Flow Interpreter::Do(const MacroStatement& statement, Scope* scope) {
  scope->Set(statement.name, workspace_->NewMacro(&statement.code, scope));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Do(const CallBlockStatement& statement, Scope* scope) {
  const auto& call = std::get<CallExpression>(statement.call->form);
  const Value callee = Evaluate(call.callee, scope);
  Arguments arguments = ArgumentsOf(call.arguments, scope);
  arguments.named.emplace_back("caller", workspace_->NewMacro(&statement.code, scope));
  if (workspace_->ok()) Print(Call(callee, std::move(arguments)));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Do(const FilterBlockStatement& statement, Scope* scope) {
  Flow flow = Flow::kNext;
  const Value text = Capture(statement.body, scope, &flow);
  Print(Filtered(statement.filter, &text, scope));
  return flow;
}

Interpreter::Flow Interpreter::Do(const WithStatement& statement, Scope* scope) {
  Scope* inner = workspace_->BeginScope(scope);
  // The values are of the scope around the block.
  for (const auto& [target, value] : statement.values) {
    Assign(target, Evaluate(value, scope), inner);
  }
  const Flow flow = Execute(statement.body, inner);
  workspace_->EndScope(inner);
  return flow;
}

}  // namespace foretoken::jinja
