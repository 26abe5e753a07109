#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>

#include "apps/foretoken/server/http/http_message.h"

namespace foretoken::server {

/// The head of a parsed request, with the path apart from the query and decoded.
HttpHead HeadOf(const boost::beast::http::request<boost::beast::http::string_body>& message);

struct RuleBroken {
  int status = 400;
  std::string sentence;
};

/// What RFC 9112 asks of a head so that this server and a proxy before it agree where each request
/// ends, and what this server asks besides (bodies as they are); the first rule that is broken.
/// `version`: 10 or 11.
std::optional<RuleBroken> BrokenRule(const HttpHead& head, unsigned version);

}  // namespace foretoken::server
