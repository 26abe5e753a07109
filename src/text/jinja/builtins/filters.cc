#include "text/jinja/builtins/builtins.h"

#include <algorithm>
#include <span>

namespace foretoken::jinja {

FilterBody FindFilter(std::string_view name) {
  for (const std::span<const NamedFilter> filters :
       {TextFilters(), ListFilters(), SelectionFilters(), OrderFilters(), NumberFilters()}) {
    const auto found = std::ranges::find(filters, name, &NamedFilter::name);
    if (found != filters.end()) return found->body;
  }
  return nullptr;
}

}  // namespace foretoken::jinja
