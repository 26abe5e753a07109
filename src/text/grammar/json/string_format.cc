#include "text/grammar/json/string_format.h"

#include <fmt/core.h>

namespace foretoken {
namespace {

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

// With a scheme or without one.
std::string UriReference() {
  const std::string encoded = "%[0-9A-Fa-f]{2}";
  const std::string first = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=@-]|{})", encoded);
  const std::string path = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{})", encoded);
  const std::string rest = fmt::format("(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{})*", encoded);
  const std::string relative = fmt::format(
      R"((?://[A-Za-z0-9.-]*(?::[0-9]*)?(?:/{0}*)*|/(?:{0}+(?:/{0}*)*)?|{1}+(?:/{0}*)*|))"
      R"((?:\?{2})?(?:#{2})?)",
      path, first, rest);
  return fmt::format("{}|{}", Uri(), relative);
}

// As databases take them: several hosts, each with a port perhaps.
std::string MultiHostUri() {
  const std::string user = "(?:[A-Za-z0-9._~!$&'()*+;=-]+(?::[A-Za-z0-9._~!$&'()*+;=-]*)?@)?";
  // Up to 65,535.
  const std::string port =
      "(?::(?:6(?:[0-4][0-9]{3}|5(?:[0-4][0-9]{2}|5(?:[0-2][0-9]|3[0-5])))|[1-5][0-9]{4}|"
      "[0-9]{1,4}))?";
  const std::string host = "[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?" + port;
  const std::string path = "[A-Za-z0-9._~!$&'()*+,;=:@-]*";
  const std::string rest = "[A-Za-z0-9._~!$&'()*+,;=:@/?-]*";
  return fmt::format(R"([A-Za-z][A-Za-z0-9+.-]*://{0}{1}(?:,{1})*(?:/{2})*(?:\?{3})?(?:#{3})?)",
                     user, host, path, rest);
}

// How many bits a prefix has.
std::string PrefixLength(int low, int high) {
  std::string text;
  for (int length = low; length <= high; ++length) {
    text += fmt::format("{}{}", text.empty() ? "" : "|", length);
  }
  return fmt::format("(?:{})", text);
}

// An address whose bits behind the prefix are 0.
std::string Ipv4Network() {
  const std::string part = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  std::string text = Ipv4() + R"((?:/32)?|0\.0\.0\.0/0)";
  for (int length = 1; length < 32; ++length) {
    const int whole = (length - 1) / 8;  // Parts before the one in which the prefix ends.
    const int step = 1 << (7 - (length - 1) % 8);
    std::string last;
    for (int value = 0; value < 256; value += step) {
      last += fmt::format("{}{}", value == 0 ? "" : "|", value);
    }
    text += fmt::format(R"(|(?:{}\.){{{}}}(?:{})(?:\.0){{{}}}/{})", part, whole, last, 3 - whole,
                        length);
  }
  return text;
}

// Prefixes that end in the last bits of a group, or behind it: of all others the bits would have to
// be counted.
std::string Ipv6Network() {
  std::string text = fmt::format("{}(?:/128)?|::/{}", Ipv6(), PrefixLength(0, 128));
  for (int groups = 1; groups < 8; ++groups) {
    text += fmt::format("|[0-9A-Fa-f]{{1,4}}(?::[0-9A-Fa-f]{{1,4}}){{{}}}::/{}", groups - 1,
                        PrefixLength(16 * groups, 128));
  }
  return text;
}

std::string Ipv4Interface() { return fmt::format("{}(?:/{})?", Ipv4(), PrefixLength(0, 32)); }
std::string Ipv6Interface() { return fmt::format("{}(?:/{})?", Ipv6(), PrefixLength(0, 128)); }

// `digits` are the 62nd and the 63rd digit.
std::string Base64(std::string_view digits) {
  const std::string digit = fmt::format("[A-Za-z0-9{}]", digits);
  return fmt::format("(?:{0}{{4}})*(?:{0}{{2}}==|{0}{{3}}=)?", digit);
}

std::string Uuid(char version) {
  return fmt::format(
      "[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{}[0-9A-Fa-f]{{3}}-[89ABab][0-9A-Fa-f]{{3}}-"
      "[0-9A-Fa-f]{{12}}",
      version);
}

std::string Either(const std::string& a, const std::string& b) {
  return fmt::format("{}|{}", a, b);
}

constexpr std::string_view kJsonPointer = "(?:/(?:[^/~]|~0|~1)*)*";

// These formats pydantic writes and JSON Schema does not know.
std::string PythonContent(std::string_view format) {
  if (format == "ipvanyaddress") return Either(Ipv4(), Ipv6());
  if (format == "ipv4network") return Ipv4Network();
  if (format == "ipv6network") return Ipv6Network();
  if (format == "ipvanynetwork") return Either(Ipv4Network(), Ipv6Network());
  if (format == "ipv4interface") return Ipv4Interface();
  if (format == "ipv6interface") return Ipv6Interface();
  if (format == "ipvanyinterface") return Either(Ipv4Interface(), Ipv6Interface());
  if (format == "multi-host-uri") return MultiHostUri();
  if (format == "name-email") return fmt::format("(?:[A-Za-z]+ )+<{0}>|{0}", Email());
  if (format == "base64" || format == "byte") return Base64("+/");
  if (format == "base64url") return Base64("_-");
  if (format == "mac-address") return "[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}";
  if (format == "decimal") return R"([+-]?[0-9]+(?:\.[0-9]+)?)";
  if (format == "fraction") return "[+-]?[0-9]+(?:/[1-9][0-9]*)?";
  const bool versioned = format.size() == 5 && format.starts_with("uuid");
  if (versioned && format.back() >= '1' && format.back() <= '8') return Uuid(format.back());
  return "";
}

std::string Content(std::string_view format) {
  if (format == "date") return Date();
  if (format == "time") return Time();
  if (format == "date-time") return fmt::format("{}[Tt]{}", Date(), Time());
  if (format == "duration") return Duration();
  if (format == "email") return Email();
  if (format == "hostname") return Hostname();
  if (format == "uri" || format == "url") return Uri();
  if (format == "uri-reference") return UriReference();
  if (format == "uuid") return "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
  if (format == "ipv4") return Ipv4();
  if (format == "ipv6") return Ipv6();
  if (format == "jwt") return R"([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)";
  if (format == "json-pointer") return std::string(kJsonPointer);
  if (format == "relative-json-pointer") {
    return fmt::format("(?:0|[1-9][0-9]*)(?:#|{})", kJsonPointer);
  }
  return PythonContent(format);
}

}  // namespace

std::string FormatPattern(std::string_view format) {
  const std::string content = Content(format);
  return content.empty() ? content : fmt::format("^(?:{})$", content);
}

}  // namespace foretoken
