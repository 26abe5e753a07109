#include "grammar/json/string_format.h"

#include <fmt/core.h>

namespace foretoken {
namespace {

constexpr const char* kOpen[] = {"password",  "binary",         "byte",  "path",
                                 "file-path", "directory-path", "regex", "json-string"};

std::string Date() {
  return R"((?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01]))"
         R"(|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8])))"
         R"(|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29))";
}

// Leap seconds only where the time is that of UTC.
std::string Time() {
  const std::string fraction = R"((?:\.[0-9]{1,9})?)";
  const std::string minute = R"((?:[01][0-9]|2[0-3]):[0-5][0-9])";
  return fmt::format("(?:{0}:[0-5][0-9]{1}(?:[Zz]|[+-]{0})|23:59:60{1}(?:[Zz]|[+-]00:00))", minute,
                     fraction);
}

std::string Duration() {
  const std::string number = "[0-9]{1,9}";
  const std::string time = fmt::format("T(?:{0}H(?:{0}M(?:{0}S)?)?|{0}M(?:{0}S)?|{0}S)", number);
  return fmt::format("P(?:{0}W|(?:{0}Y(?:{0}M(?:{0}D)?)?|{0}M(?:{0}D)?|{0}D)(?:{1})?|{1})", number,
                     time);
}

std::string Ipv4() {
  const std::string part = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return fmt::format(R"({0}(?:\.{0}){{3}})", part);
}

// "::" stands for what is missing of the eight groups; the last two may be an IPv4 address.
std::string Ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const std::string last = fmt::format("(?:{0}:{0}|{1})", group, Ipv4());
  std::string text = fmt::format("(?:{}:){{6}}{}", group, last);
  const auto before = [&](int most) {
    return most == 0 ? std::string() : fmt::format("(?:(?:{0}:){{0,{1}}}{0})?", group, most - 1);
  };
  for (int after = 5; after >= 0; --after) {
    text += fmt::format("|{}::(?:{}:){{{}}}{}", before(5 - after), group, after, last);
  }
  text += fmt::format("|{}::{}|{}::", before(6), group, before(7));
  return fmt::format("(?:{})", text);
}

std::string Email() {
  const std::string atom = R"([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)";
  const std::string label = "[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*";
  return fmt::format(R"({0}(?:\.{0})*@(?:{1}\.)+[A-Za-z]{{2,}})", atom, label);
}

// No more labels than can have 63 characters each within 253.
std::string Hostname() {
  const auto label = [](int most) {
    return fmt::format("[A-Za-z0-9](?:[A-Za-z0-9-]{{0,{}}}[A-Za-z0-9])?", most - 2);
  };
  return fmt::format(R"({}(?:\.{}){{0,3}})", label(63), label(62));
}

// Hosts are names and IPv4 addresses.
std::string Uri() {
  const std::string encoded = "%[0-9A-Fa-f]{2}";
  const std::string name = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=-]|{})", encoded);
  const std::string user = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=:-]|{})", encoded);
  const std::string path = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{})", encoded);
  const std::string rest = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{})*", encoded);
  const std::string authority = fmt::format("(?:{}*@)?{}*(?::[0-9]*)?", user, name);
  const std::string hierarchy =
      fmt::format("(?://{1}(?:/{0}*)*|/(?:{0}+(?:/{0}*)*)?|{0}+(?:/{0}*)*|)", path, authority);
  return fmt::format(R"([A-Za-z][A-Za-z0-9+.-]*:{0}(?:\?{1})?(?:#{1})?)", hierarchy, rest);
}

std::string Content(std::string_view format) {
  if (format == "date") return Date();
  if (format == "time") return Time();
  if (format == "date-time") return fmt::format("{}[Tt]{}", Date(), Time());
  if (format == "duration") return Duration();
  if (format == "email") return Email();
  if (format == "hostname") return Hostname();
  if (format == "uri") return Uri();
  if (format == "uuid") return "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
  if (format == "ipv4") return Ipv4();
  if (format == "ipv6") return Ipv6();
  if (format == "jwt") return R"([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)";
  return "";
}

}  // namespace

std::optional<std::string> FormatPattern(std::string_view format) {
  for (const char* const open : kOpen) {
    if (format == open) return "";
  }
  const std::string content = Content(format);
  if (content.empty()) return std::nullopt;
  return fmt::format("^(?:{})$", content);
}

}  // namespace foretoken
