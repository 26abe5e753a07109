#include "apps/foretoken/server/access/loopback.h"

#include <arpa/inet.h>

#include <string>

#include "base/text/text.h"

namespace foretoken::server {

bool IsLoopback(std::string_view host) {
  if (EqualIgnoringCase(host, "localhost")) return true;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string text(host);
  in_addr four;
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return text.starts_with("127.");
  in6_addr six;
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace foretoken::server
