#include "text/jinja/builtins/parameters.h"

#include <algorithm>
#include <utility>

#include "text/jinja/operations.h"

namespace foretoken::jinja {

bool Parameters::Has(std::string_view name) const {
  return next_ < arguments_->positional.size() ||
         std::ranges::any_of(arguments_->named,
                             [&](const auto& argument) { return argument.first == name; });
}

bool Parameters::Take(std::string_view name, Value* value) {
  if (next_ < arguments_->positional.size()) {
    *value = std::move(arguments_->positional[next_++]);
    return true;
  }
  auto& named = arguments_->named;
  const auto found =
      std::ranges::find_if(named, [&](const auto& argument) { return argument.first == name; });
  if (found == named.end()) return false;
  *value = std::move(found->second);
  named.erase(found);
  return true;
}

void Parameters::Refuse(std::string_view name, std::string_view wanted, const Value& value) {
  workspace_->Fail("'{}' of {} must be {}, not a {}", name, function_, wanted, value.TypeName());
}

Value Parameters::Optional(std::string_view name, Value otherwise) {
  Take(name, &otherwise);
  return otherwise;
}

Value Parameters::Required(std::string_view name) {
  Value value;
  if (!Take(name, &value)) {
    workspace_->Fail("{} lacks its argument '{}'", function_, name);
  }
  return value;
}

std::int64_t Parameters::Integer(std::string_view name, std::int64_t otherwise) {
  Value value;
  if (!Take(name, &value)) return otherwise;
  const auto integer = value.Integer();
  if (!integer.has_value()) Refuse(name, "an integer", value);
  return integer.value_or(otherwise);
}

bool Parameters::Flag(std::string_view name, bool otherwise) {
  Value value;
  return Take(name, &value) ? Truth(value) : otherwise;
}

Value Parameters::RequiredText(std::string_view name) {
  Value value = Required(name);
  if (workspace_->ok() && !value.IsString()) Refuse(name, "a string", value);
  return value;
}

Value Parameters::OptionalText(std::string_view name, Value otherwise) {
  Value value = std::move(otherwise);
  if (Take(name, &value) && !value.IsNone() && !value.IsString()) Refuse(name, "a string", value);
  return value;
}

bool Parameters::Close() {
  if (next_ < arguments_->positional.size()) {
    workspace_->Fail("{} takes at most {} arguments, not {}", function_, next_,
                     arguments_->positional.size());
  } else if (!arguments_->named.empty()) {
    workspace_->Fail("{} has no argument '{}'", function_, arguments_->named.front().first);
  }
  return workspace_->ok();
}

}  // namespace foretoken::jinja
