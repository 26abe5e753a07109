#include "text/jinja/template.h"

#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/json_text.h"
#include "text/jinja/syntax/parser.h"
#include "text/jinja/syntax/syntax.h"

namespace foretoken::jinja {

Template::Template(std::unique_ptr<const SyntaxTree> tree) : tree_(std::move(tree)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::Parse(std::string_view source) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  if (source.size() > kMost) {
    return Invalid("the template has {} bytes; at most {} are allowed", source.size(), kMost);
  }
  FT_ASSIGN_OR_RETURN(std::unique_ptr<const SyntaxTree> tree, ParseTemplate(source));
  return Template(std::move(tree));
}

Result<Text> Template::Render(const Inputs& inputs, const Limits& limits) const {
  Workspace workspace(limits, inputs.now);
  const Value data = FromJson(&workspace, inputs.data);
  Dict* variables = data.AsDict();
  if (variables == nullptr) {
    workspace.Fail("the inputs are no object");
  } else {
    for (const auto& [name, spelling] : inputs.own) {
      if (variables->Find(name) != nullptr) continue;
      workspace.Set(variables, workspace.NewString(name), workspace.NewString(spelling));
    }
  }
  TextBuilder out(&workspace);
  if (workspace.ok()) Interpreter(*tree_, variables, &workspace).Run(&out);
  if (!workspace.ok()) return workspace.status().error();
  return out.Release();
}

}  // namespace foretoken::jinja
