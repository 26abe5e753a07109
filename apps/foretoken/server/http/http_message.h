#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken::server {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

/// What a request says before its body.
struct HttpHead {
  std::string method;
  std::string path;   ///< Decoded, without the query.
  std::string query;  ///< As sent, without the question mark.
  HttpFields fields;
  std::string peer;  ///< The client's address, for logs.
  std::string id;    ///< The request's id: the client's X-Request-Id, or one made here.
  /// Who sends it, where the app's `screen` has noted that: a thing of the app's.
  std::shared_ptr<const void> client;

  /// The first field of that name, whatever its case; empty where there is none.
  std::string_view Field(std::string_view name) const;
  /// What the query says of that name, decoded: "b" of "a" in "a=b&c=d"; empty where nothing.
  std::string QueryValue(std::string_view name) const;
};

struct HttpRequest {
  HttpHead head;
  std::string body;
  std::shared_ptr<void> counted;  ///< Has the body count among all bodies while it is kept.
};

struct HttpReply {
  int status = 200;
  std::string content_type;
  std::string body;
  HttpFields fields;
};

/// How a request went, for a log.
struct HttpAccess {
  const HttpHead& head;
  int status = 0;  ///< 499: the client left before its answer ended.
  double milliseconds = 0;
  std::string note;  ///< What its handler has to say of it.
};

/// What a client may take of the server; each holds as bytes arrive.
struct HttpLimits {
  std::size_t connections = 8192;        ///< More are answered 503 and closed.
  std::size_t head_bytes = 64 << 10;     ///< Request line and fields: else 431.
  std::size_t body_bytes = 4 << 20;      ///< Else 413.
  std::size_t bodies_bytes = 256 << 20;  ///< All bodies being read and handled together: else 503.
  double idle_seconds = 15;              ///< Between two requests of a connection.
  double head_seconds = 10;              ///< For a request's head to arrive whole: else 408.
  double request_seconds = 30;           ///< For all of a request: else 408.
  double write_seconds = 20;             ///< For the client to take anything at all.
};

}  // namespace foretoken::server
