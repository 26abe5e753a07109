#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "text/jinja/syntax/syntax.h"

namespace foretoken::jinja {

/// The tree of a template; an error names its line.
Result<std::unique_ptr<const SyntaxTree>> ParseTemplate(std::string_view source);

}  // namespace foretoken::jinja
