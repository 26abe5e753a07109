#pragma once

#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

struct NamedFilter {
  std::string_view name;
  FilterBody body;
};

/// The filter of a name; null where there is none.
FilterBody FindFilter(std::string_view name);

}  // namespace foretoken::jinja
