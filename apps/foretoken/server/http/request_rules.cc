#include "apps/foretoken/server/http/request_rules.h"

#include <algorithm>
#include <string_view>

#include "base/text/text.h"

namespace foretoken::server {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// %XX as its byte; what is no such thing stays.
std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = i + 2 < text.size() && text[i] == '%' ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      decoded += text[i];
    } else {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace

std::string_view HttpHead::Field(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (EqualIgnoringCase(field, name)) return value;
  }
  return {};
}

std::string HttpHead::QueryValue(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos || pair.substr(0, equals) != name) continue;
    return PercentDecoded(pair.substr(equals + 1));
  }
  return {};
}

HttpHead HeadOf(const boost::beast::http::request<boost::beast::http::string_body>& message) {
  HttpHead head;
  head.method = std::string(message.method_string());
  std::string_view target(message.target().data(), message.target().size());
  // The form with a host (RFC 9112, 3.2.2): that host counts, whatever the Host field says.
  std::optional<std::string> host;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualIgnoringCase(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.size(), target.find_first_of("/?"));
    host = target.substr(0, end);
    target.remove_prefix(end);
  }
  if (const std::size_t question = target.find('?'); question != std::string_view::npos) {
    head.query = target.substr(question + 1);
    target = target.substr(0, question);
  }
  head.path = PercentDecoded(target);
  if (head.path.empty()) head.path.push_back('/');
  for (const auto& field : message) {
    head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
    if (host.has_value() && EqualIgnoringCase(head.fields.back().first, "Host")) {
      head.fields.back().second = *host;
    }
  }
  return head;
}

std::optional<RuleBroken> BrokenRule(const HttpHead& head, unsigned version) {
  const auto count = [&head](std::string_view name) {
    return std::count_if(head.fields.begin(), head.fields.end(), [name](const auto& field) {
      return EqualIgnoringCase(field.first, name);
    });
  };
  const auto lengths = count("Content-Length");
  const auto encodings = count("Transfer-Encoding");
  if (lengths > 1) return RuleBroken{400, "a request has one Content-Length at most"};
  if (lengths > 0 && encodings > 0) {
    return RuleBroken{400, "a request has a Content-Length or a Transfer-Encoding, not both"};
  }
  const std::string_view length = head.Field("Content-Length");
  if (lengths > 0 && (length.empty() || !std::all_of(length.begin(), length.end(), [](char c) {
                        return c >= '0' && c <= '9';
                      }))) {
    return RuleBroken{400, "Content-Length is a number of bytes, in digits alone"};
  }
  if (encodings > 1 ||
      (encodings > 0 &&
       (!EqualIgnoringCase(head.Field("Transfer-Encoding"), "chunked") || version < 11))) {
    return RuleBroken{400, "the only Transfer-Encoding that this server takes is 'chunked'"};
  }
  if (version >= 11 && count("Host") != 1) {
    return RuleBroken{400, "a request of HTTP/1.1 has one Host field"};
  }
  const std::string_view coding = head.Field("Content-Encoding");
  if (!coding.empty() && !EqualIgnoringCase(coding, "identity")) {
    return RuleBroken{415, "bodies are taken as they are, without a Content-Encoding"};
  }
  const std::string_view expect = head.Field("Expect");
  if (!expect.empty() && !EqualIgnoringCase(expect, "100-continue")) {
    return RuleBroken{417, "the only expectation that this server meets is '100-continue'"};
  }
  return std::nullopt;
}

}  // namespace foretoken::server
