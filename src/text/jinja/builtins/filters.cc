#include "text/jinja/builtins/filters.h"

#include <algorithm>
#include <span>

#include "text/jinja/builtins/tables.h"

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
