#include "grammar/json/schema_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "grammar/json/json_text.h"
#include "grammar/json/schema_document.h"
#include "grammar/json/schema_keywords.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

// The bound as a whole number within it; `inward` is the direction of the allowed numbers.
std::optional<std::int64_t> Bound(const Json& schema, const char* inclusive, const char* exclusive,
                                  int inward, const std::string& path) {
  std::optional<double> bound;
  for (const char* const keyword : {inclusive, exclusive}) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) continue;
    if (!found->is_number() || std::abs(found->get<double>()) > 1e15) {
      RefuseSchema(path, fmt::format("'{}' must be a number within +-10^15", keyword));
    }
    double value = found->get<double>();
    value = inward > 0 ? std::ceil(value) : std::floor(value);
    if (keyword == exclusive && value == found->get<double>()) value += inward;
    bound = !bound.has_value() ? value
            : inward > 0       ? std::max(*bound, value)
                               : std::min(*bound, value);
  }
  if (!bound.has_value()) return std::nullopt;
  return static_cast<std::int64_t>(*bound);
}

}  // namespace

std::string NumberBody(bool integer, const Json& schema, const std::string& path) {
  const auto low = Bound(schema, "minimum", "exclusiveMinimum", +1, path);
  const auto high = Bound(schema, "maximum", "exclusiveMaximum", -1, path);
  if (!low.has_value() && !high.has_value()) return integer ? "integer" : "number";
  const std::int64_t first = low.value_or(-kMaxJsonInteger);
  const std::int64_t last = high.value_or(kMaxJsonInteger);
  if (first > last) RefuseSchema(path, "no whole number lies within its bounds");
  return integer ? JsonIntegers(first, last) : JsonNumbers(first, last);
}

std::string StringBody(const Json& schema, const std::string& path) {
  const int min = SchemaCount(schema, "minLength", 0, path);
  const int max = SchemaCount(schema, "maxLength", -1, path);
  const bool counted = schema.contains("minLength") || schema.contains("maxLength");
  const bool pattern = schema.contains("pattern");
  const bool format = schema.contains("format");
  if (counted + pattern + format > 1) {
    RefuseSchema(path, "only one of 'pattern', 'format' and lengths is supported at once");
  }
  std::string content;
  if (pattern) {
    if (!schema["pattern"].is_string()) RefuseSchema(path, "'pattern' must be a text");
    const Result<std::string> text = JsonStringPattern(schema["pattern"].get<std::string>());
    if (!text.ok()) RefuseSchema(path, text.error().message);
    content = *text;
  } else if (format) {
    const auto text = schema["format"].is_string()
                          ? JsonStringFormat(schema["format"].get<std::string>())
                          : std::nullopt;
    if (!text.has_value()) {
      RefuseSchema(path, fmt::format("the format {} is not supported", schema["format"].dump()));
    }
    content = *text;
  } else if (counted) {
    if (max >= 0 && max < min) RefuseSchema(path, "'maxLength' is less than 'minLength'");
    content = max < 0 ? fmt::format("char{{{},}}", min) : fmt::format("char{{{},{}}}", min, max);
  } else {
    return "string";
  }
  return fmt::format(R"("\"" {} "\"")", content);
}

}  // namespace foretoken
