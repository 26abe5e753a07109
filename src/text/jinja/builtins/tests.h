#pragma once

#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// What stands behind `is`: the test of a name; null where there is none.
TestBody FindTest(std::string_view name);

}  // namespace foretoken::jinja
