#include <algorithm>
#include <utility>

#include "text/jinja/builtins/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {

Value Interpreter::Evaluate(const Expression* expression, Scope* scope) {
  Value value;
  workspace_->set_line(expression->line);
  if (workspace_->Enter()) {
    value = std::visit([&](const auto& form) { return Of(form, scope); }, expression->form);
  }
  workspace_->Leave();
  return value;
}

Value Interpreter::Of(const ConstantExpression& form, Scope*) { return form.value; }

Value Interpreter::Of(const NameExpression& form, Scope* scope) {
  for (const Scope* around = scope; around != nullptr; around = around->parent) {
    if (const Value* found = around->Find(form.name)) return *found;
  }
  if (const Value* found = variables_->Find(*form.name)) return *found;
  if (const Function* function = FindFunction(*workspace_, *form.name)) return function;
  return Undefined{form.name};
}

Value Interpreter::Of(const ListExpression& form, Scope* scope) {
  List* list = workspace_->NewList(form.is_tuple ? List::Kind::kTuple : List::Kind::kList);
  for (const Expression* item : form.items) {
    if (!workspace_->Push(list, Evaluate(item, scope))) break;
  }
  return list;
}

Value Interpreter::Of(const DictExpression& form, Scope* scope) {
  Dict* dict = workspace_->NewDict();
  for (const auto& [key, value] : form.entries) {
    const Value name = Evaluate(key, scope);
    if (!workspace_->Set(dict, name, Evaluate(value, scope))) break;
  }
  return dict;
}

Value Interpreter::Of(const AttributeExpression& form, Scope* scope) {
  const Value object = Evaluate(form.object, scope);
  return workspace_->ok() ? GetAttribute(workspace_, object, form.name) : Value();
}

Value Interpreter::Of(const ItemExpression& form, Scope* scope) {
  const Value object = Evaluate(form.object, scope);
  const Value key = Evaluate(form.key, scope);
  return workspace_->ok() ? GetItem(workspace_, object, key) : Value();
}

Value Interpreter::Of(const SliceExpression& form, Scope* scope) {
  const auto bound = [&](const Expression* given) {
    return given == nullptr ? Value(None{}) : Evaluate(given, scope);
  };
  const Value object = Evaluate(form.object, scope);
  const Value start = bound(form.start);
  const Value stop = bound(form.stop);
  const Value step = bound(form.step);
  return workspace_->ok() ? GetSlice(workspace_, object, start, stop, step) : Value();
}

Arguments Interpreter::ArgumentsOf(const CallArguments& given, Scope* scope) {
  Arguments arguments;
  for (const Expression* value : given.positional) {
    arguments.positional.push_back(Evaluate(value, scope));
  }
  for (const auto& [name, value] : given.named) {
    arguments.named.emplace_back(name, Evaluate(value, scope));
  }
  if (given.list != nullptr) {
    std::vector<Value> more;
    if (!Iterate(workspace_, Evaluate(given.list, scope), &more)) return arguments;
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  if (given.dict != nullptr) {
    const Value named = Evaluate(given.dict, scope);
    const Dict* dict = named.AsDict();
    if (dict == nullptr) workspace_->Fail("what stands behind ** is no dict");
    for (std::size_t i = 0; dict != nullptr && i < dict->entries.size(); ++i) {
      const Text* name = dict->entries[i].first.AsText();
      if (name == nullptr) workspace_->Fail("the names of arguments are strings");
      if (!workspace_->Step()) break;
      arguments.named.emplace_back(name->bytes(), dict->entries[i].second);
    }
  }
  return arguments;
}

Value Interpreter::Of(const CallExpression& form, Scope* scope) {
  // A method that is called at once needs no value of its own.
  if (const auto* attribute = std::get_if<AttributeExpression>(&form.callee->form)) {
    const Value object = Evaluate(attribute->object, scope);
    if (!workspace_->ok()) return {};
    const NamedMethod* method =
        object.AsNamespace() == nullptr ? FindMethod(object, *attribute->name) : nullptr;
    if (method != nullptr && method->body != nullptr) {
      Arguments arguments = ArgumentsOf(form.arguments, scope);
      return workspace_->ok() ? method->body(workspace_, object, &arguments) : Value();
    }
    const Value callee = GetAttribute(workspace_, object, attribute->name);
    if (callee.IsUndefined() && workspace_->ok()) {
      return workspace_->Fail("a {} has no method '{}'", object.TypeName(), *attribute->name);
    }
    return Call(callee, ArgumentsOf(form.arguments, scope));
  }
  const Value callee = Evaluate(form.callee, scope);
  return Call(callee, ArgumentsOf(form.arguments, scope));
}

Value Interpreter::Call(const Value& callee, Arguments arguments) {
  if (!workspace_->ok()) return {};
  if (const Macro* macro = callee.AsMacro()) return CallMacro(*macro, std::move(arguments));
  if (const Function* function = callee.AsFunction()) return function->body(workspace_, &arguments);
  if (Loop* loop = callee.AsLoop()) return CallLoop(loop, arguments);
  if (const Method* method = callee.AsMethod()) {
    if (method->body != nullptr) return method->body(workspace_, method->self, &arguments);
    return workspace_->Fail("the method '{}' of a {} is not known here", method->name,
                            method->self.TypeName());
  }
  const std::string* name = callee.UndefinedName();
  if (name != nullptr) return workspace_->Fail("there is no function '{}'", *name);
  return workspace_->Fail("a {} cannot be called", callee.TypeName());
}

void Interpreter::BindParameters(const Macro& macro, Arguments* arguments, Scope* scope) {
  const std::vector<Parameter>& parameters = macro.code->parameters;
  auto& named = arguments->named;
  const std::size_t taken = std::min(parameters.size(), arguments->positional.size());
  for (std::size_t i = 0; i < parameters.size() && workspace_->ok(); ++i) {
    const Parameter& parameter = parameters[i];
    const auto found = std::ranges::find_if(
        named, [&](const auto& argument) { return argument.first == *parameter.name; });
    if (i < taken) {
      scope->Set(parameter.name, arguments->positional[i]);
    } else if (found != named.end()) {
      scope->Set(parameter.name, std::move(found->second));
      named.erase(found);
    } else if (parameter.otherwise != nullptr) {
      scope->Set(parameter.name, Evaluate(parameter.otherwise, scope));
    } else {
      scope->Set(parameter.name, Undefined{parameter.name});
    }
  }
  BindRest(macro, taken, arguments, scope);
}

void Interpreter::BindRest(const Macro& macro, std::size_t taken, Arguments* arguments,
                           Scope* scope) {
  const MacroCode& code = *macro.code;
  if (!workspace_->ok()) return;
  auto& named = arguments->named;
  const auto is_parameter = [&](Name name) {
    return std::ranges::any_of(code.parameters,
                               [&](const Parameter& parameter) { return parameter.name == name; });
  };
  if (code.caller != nullptr && !is_parameter(code.caller)) {
    const auto found =
        std::ranges::find_if(named, [](const auto& entry) { return entry.first == "caller"; });
    scope->Set(code.caller, found == named.end() ? Value(Undefined{code.caller}) : found->second);
    if (found != named.end()) named.erase(found);
  }
  if (code.extra_named != nullptr) {
    Dict* rest = workspace_->NewDict();
    for (auto& [name, value] : named) {
      workspace_->Set(rest, workspace_->NewString(name), std::move(value));
    }
    scope->Set(code.extra_named, rest);
  } else if (!named.empty()) {
    workspace_->Fail("the macro '{}' has no parameter '{}'", code.name, named.front().first);
  }
  if (code.extra_positional != nullptr) {
    List* rest = workspace_->NewList(List::Kind::kTuple);
    for (std::size_t i = taken; i < arguments->positional.size(); ++i) {
      workspace_->Push(rest, arguments->positional[i]);
    }
    scope->Set(code.extra_positional, rest);
  } else if (taken < arguments->positional.size()) {
    workspace_->Fail("the macro '{}' takes at most {} arguments, not {}", code.name, taken,
                     arguments->positional.size());
  }
}

Value Interpreter::CallMacro(const Macro& macro, Arguments arguments) {
  TextBuilder text(workspace_);
  const int line = workspace_->line();
  Scope* scope = workspace_->BeginScope(macro.scope);
  BindParameters(macro, &arguments, scope);
  TextBuilder* const outer = std::exchange(out_, &text);
  if (workspace_->ok()) Execute(macro.code->body, scope);
  out_ = outer;
  workspace_->EndScope(scope);
  workspace_->set_line(line);
  return text.Finish();
}

Value Interpreter::CallLoop(Loop* loop, const Arguments& arguments) {
  if (!loop->code->is_recursive) {
    return workspace_->Fail("only a loop marked 'recursive' can be called");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return workspace_->Fail("a loop is called with what it goes through");
  }
  TextBuilder text(workspace_);
  TextBuilder* const outer = std::exchange(out_, &text);
  RunLoop(*loop->code, arguments.positional[0], loop->scope, loop->depth + 1);
  out_ = outer;
  return text.Finish();
}

Value Interpreter::Of(const FilterExpression& form, Scope* scope) {
  return Filtered(form, nullptr, scope);
}

Value Interpreter::Filtered(const Expression* filter, const Value* text, Scope* scope) {
  Value value;
  workspace_->set_line(filter->line);
  if (workspace_->Enter()) value = Filtered(std::get<FilterExpression>(filter->form), text, scope);
  workspace_->Leave();
  return value;
}

Value Interpreter::Filtered(const FilterExpression& form, const Value* text, Scope* scope) {
  Value input;
  if (form.input == nullptr) {
    input = *text;
  } else if (text != nullptr) {
    input = Filtered(form.input, text, scope);
  } else {
    input = Evaluate(form.input, scope);
  }
  if (form.body == nullptr) {
    return workspace_->Fail("there is no filter '{}'", form.name);
  }
  Arguments arguments = ArgumentsOf(form.arguments, scope);
  return workspace_->ok() ? form.body(workspace_, input, &arguments) : Value();
}

Value Interpreter::Of(const TestExpression& form, Scope* scope) {
  const Value input = Evaluate(form.input, scope);
  if (form.body == nullptr) {
    return workspace_->Fail("there is no test '{}'", form.name);
  }
  Arguments arguments = ArgumentsOf(form.arguments, scope);
  return workspace_->ok() && form.body(workspace_, input, &arguments);
}

Value Interpreter::Of(const UnaryExpression& form, Scope* scope) {
  const Value operand = Evaluate(form.operand, scope);
  if (!workspace_->ok()) return {};
  if (form.kind == UnaryExpression::Kind::kNot) return !Truth(operand);
  if (form.kind == UnaryExpression::Kind::kNegative) return Negate(workspace_, operand);
  if (const auto integer = operand.Integer()) return *integer;
  if (operand.AsFloat() != nullptr) return operand;
  return workspace_->Fail("a {} has no sign", operand.TypeName());
}

Value Interpreter::Of(const BinaryExpression& form, Scope* scope) {
  const Value left = Evaluate(form.left, scope);
  const Value right = Evaluate(form.right, scope);
  return workspace_->ok() ? Calculate(workspace_, form.operation, left, right) : Value();
}

Value Interpreter::Of(const CompareExpression& form, Scope* scope) {
  Value left = Evaluate(form.first, scope);
  for (const auto& [comparison, operand] : form.others) {
    Value right = Evaluate(operand, scope);
    if (!workspace_->ok() || !Compare(workspace_, comparison, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::Of(const ConcatExpression& form, Scope* scope) {
  TextBuilder text(workspace_);
  for (const Expression* part : form.parts) {
    if (!AppendStr(Evaluate(part, scope), &text)) break;
  }
  return text.Finish();
}

Value Interpreter::Of(const LogicExpression& form, Scope* scope) {
  Value left = Evaluate(form.left, scope);
  if (Truth(left) == form.is_or) return left;
  return Evaluate(form.right, scope);
}

Value Interpreter::Of(const ConditionalExpression& form, Scope* scope) {
  if (Truth(Evaluate(form.test, scope))) return Evaluate(form.then, scope);
  return form.otherwise == nullptr ? Value() : Evaluate(form.otherwise, scope);
}

}  // namespace foretoken::jinja
