#pragma once

#include <string_view>

#include "apps/foretoken/server/http/http_message.h"

namespace foretoken::server {

/// Whether a browser says that a page of another site sends this: by its `Sec-Fetch-Site`, or by
/// an `Origin` that is neither the server's own nor `allowed` ("*": all are). Programs that are no
/// browsers send neither.
bool FromForeignPage(const HttpHead& head, std::string_view allowed);

/// Whether the body is said to be JSON: "application/json" in any case, with parameters or without.
/// No page may send that to another site unless the site allows it (CORS).
bool SaysJson(const HttpHead& head);

}  // namespace foretoken::server
