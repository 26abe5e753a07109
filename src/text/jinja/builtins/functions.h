#pragma once

#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// A function that every template has: range, dict, namespace, raise_exception, and strftime_now
/// where the workspace knows the time. Null where there is none of that name.
const Function* FindFunction(const Workspace& workspace, std::string_view name);

}  // namespace foretoken::jinja
