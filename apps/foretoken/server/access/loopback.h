#pragma once

#include <string_view>

namespace foretoken::server {

/// Whether a host is the machine itself, whoever names it: localhost, an address of 127.0.0.0/8, or
/// ::1, which may stand in brackets as in a URL. A name that only begins like one of these is not.
bool IsLoopback(std::string_view host);

}  // namespace foretoken::server
