#include "text/jinja/workspace.h"

#include <utility>

namespace foretoken::jinja {

Undefined Workspace::Fail(std::string message) {
  if (status_.ok()) {
    status_ = Invalid("line {} of the template: {}", line_, message);
  }
  return {};
}

bool Workspace::Step(std::size_t count) {
  if (!ok()) return false;
  steps_ += count;
  if (steps_ <= limits_.steps) return true;
  Fail("the rendering takes more than {} steps, which is the limit", limits_.steps);
  return false;
}

bool Workspace::Spend(std::size_t bytes) {
  if (!ok()) return false;
  if (bytes <= limits_.memory - used_) {
    used_ += bytes;
    return StepOver(bytes);
  }
  Fail("the values take more than {} bytes, which is the limit", limits_.memory);
  return false;
}

bool Workspace::Enter() {
  ++depth_;
  if (!Step()) return false;
  if (depth_ <= limits_.depth) return true;
  Fail("more than {} evaluations within each other, which is the limit", limits_.depth);
  return false;
}

Value Workspace::NewString(std::string_view bytes, bool from_input) {
  TextBuilder builder(this);
  builder.Append(bytes, from_input);
  return builder.Finish();
}

// Objects are counted when they are made and when they grow; an empty one more than the limit
// allows does no harm.
List* Workspace::NewList(List::Kind kind) {
  Spend(sizeof(List) + kObject);
  return &lists_.emplace_back(List{kind, {}});
}

bool Workspace::Push(List* list, Value item) {
  // Vectors that grow hold up to twice what is in them.
  if (!Spend(2 * sizeof(Value))) return false;
  list->items.push_back(std::move(item));
  return true;
}

Dict* Workspace::NewDict() {
  Spend(sizeof(Dict) + kObject);
  return &dicts_.emplace_back();
}

bool Workspace::Set(Dict* dict, Value key, Value value) {
  std::optional<std::string> text = KeyOf(key);
  if (!text.has_value()) {
    Fail("a {} cannot be the key of a dict", key.TypeName());
    return false;
  }
  if (!Spend(4 * sizeof(Value) + kObject + text->size())) return false;
  dict->Set(std::move(*text), std::move(key), std::move(value));
  return true;
}

Namespace* Workspace::NewNamespace() {
  Spend(sizeof(Namespace) + kObject);
  return &namespaces_.emplace_back();
}

Macro* Workspace::NewMacro(const MacroCode* code, Scope* scope) {
  Spend(sizeof(Macro) + kObject);
  for (Scope* outer = scope; outer != nullptr && !outer->captured; outer = outer->parent) {
    outer->captured = true;
  }
  return &macros_.emplace_back(Macro{code, scope});
}

Loop* Workspace::NewLoop() {
  Spend(sizeof(Loop) + kObject);
  return &loops_.emplace_back();
}

Method* Workspace::NewMethod(Method method) {
  Spend(sizeof(Method) + kObject);
  return &methods_.emplace_back(std::move(method));
}

Scope* Workspace::BeginScope(Scope* parent) {
  if (free_scopes_.empty()) {
    Spend(sizeof(Scope) + kObject);
    free_scopes_.push_back(&scopes_.emplace_back());
  }
  Scope* scope = free_scopes_.back();
  free_scopes_.pop_back();
  scope->parent = parent;
  return scope;
}

void Workspace::EndScope(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

TextBuilder::TextBuilder(Workspace* workspace) : workspace_(workspace) {
  if (workspace_->Spend(Workspace::kObject)) spent_ = Workspace::kObject;
}

TextBuilder::~TextBuilder() { workspace_->Refund(spent_); }

bool TextBuilder::Append(std::string_view bytes, bool from_input) {
  const std::size_t wanted = bytes.size() + (from_input ? sizeof(Span) : 0);
  if (!workspace_->Spend(wanted)) return false;
  text_.Append(bytes, from_input);
  spent_ += wanted;
  return true;
}

bool TextBuilder::Append(const Text& text, std::size_t begin, std::size_t end) {
  const std::size_t before = text_.inputs().size();
  if (!workspace_->Spend(end - begin)) return false;
  text_.Append(text, begin, end);
  spent_ += end - begin;
  const std::size_t spans = (text_.inputs().size() - before) * sizeof(Span);
  if (!workspace_->Spend(spans)) return false;
  spent_ += spans;
  return true;
}

Value TextBuilder::Finish(bool is_safe) {
  auto string = std::make_shared<StoredText>(std::exchange(text_, {}), nullptr);
  string->is_safe = is_safe;
  // What was spent on pieces that joined comes back.
  const std::size_t takes = Workspace::Footprint(string->text);
  if (takes <= spent_) {
    workspace_->Refund(spent_ - takes);
    string->owner = workspace_;
  } else {
    workspace_->Refund(spent_);
  }
  spent_ = 0;
  return Value(String(std::move(string)));
}

Text TextBuilder::Release() {
  workspace_->Refund(std::exchange(spent_, 0));
  return std::exchange(text_, {});
}

}  // namespace foretoken::jinja
