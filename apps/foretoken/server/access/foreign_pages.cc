#include "apps/foretoken/server/access/foreign_pages.h"

#include "base/text/text.h"

namespace foretoken::server {
bool FromForeignPage(const HttpHead& head, std::string_view allowed) {
  const std::string_view origin = head.Field("Origin");
  if (allowed == "*" || (!origin.empty() && origin == allowed)) return false;
  const std::string_view site = head.Field("Sec-Fetch-Site");
  if (!site.empty()) return site != "same-origin" && site != "none";
  if (origin.empty()) return false;
  const std::size_t scheme = origin.find("://");
  return scheme == std::string_view::npos ||
         !EqualIgnoringCase(origin.substr(scheme + 3), head.Field("Host"));
}

bool SaysJson(const HttpHead& head) {
  std::string_view type = head.Field("Content-Type");
  type = type.substr(0, type.find(';'));
  const std::size_t last = type.find_last_not_of(" \t");
  return last != std::string_view::npos &&
         EqualIgnoringCase(type.substr(0, last + 1), "application/json");
}

}  // namespace foretoken::server
