#include "apps/foretoken/server/api/content_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// A member that is text; nothing where it is not.
std::optional<std::string> TextMember(const Json& object, const char* name) {
  const auto text = object.find(name);
  if (text == object.end() || !text->is_string()) return std::nullopt;
  return text->get<std::string>();
}

// Reads the text of a content; `other` is called for each part that is none.
template <typename Other>
bool ReadParts(FieldReader* fields, std::string_view name, std::span<const std::string_view> types,
               std::string* text, const Other& other) {
  const Json* field = fields->Find(name);
  if (field == nullptr) return false;
  if (field->is_string()) {
    *text = field->text();
    return true;
  }
  if (!field->is_array()) fields->Refuse(name, "a string or an array of text parts");
  for (std::size_t i = 0; i < field->size() && fields->ok(); ++i) {
    const std::optional<std::string> part = TextOfPart((*field)[i], types);
    if (part.has_value()) *text += *part;
    if (!part.has_value()) other(i, PartType((*field)[i]));
  }
  return true;
}

}  // namespace

std::string PartType(const Json& part) {
  const Json type = part.is_object() ? part.value("type", Json()) : Json();
  return type.is_string() ? type.get<std::string>() : std::string();
}

std::optional<std::string> TextOfPart(const Json& part, std::span<const std::string_view> types) {
  const std::string type = PartType(part);
  if (type.empty()) return std::nullopt;
  if (std::ranges::count(types, type) > 0) return TextMember(part, "text");
  if (type == "refusal") return TextMember(part, "refusal");
  if (type == "document" && PartType(part.value("source", Json())) == "text") {
    return TextMember(part["source"], "data");
  }
  if (type != "search_result" || !part.value("content", Json()).is_array()) return std::nullopt;
  std::string found = TextMember(part, "title").value_or("");
  for (const Json& inner : part["content"]) {
    const std::optional<std::string> text = TextOfPart(inner, types);
    if (!text.has_value()) return std::nullopt;
    found += "\n" + *text;
  }
  return found;
}

bool ReadTextField(FieldReader* fields, std::string_view name,
                   std::span<const std::string_view> types, std::string* text) {
  return ReadParts(fields, name, types, text, [&](std::size_t place, const std::string& type) {
    fields->Refuse(name, fmt::format("a string or an array of {{\"type\": \"{}\", \"text\": ...}}: "
                                     "this server reads text only, and part {} is '{}'",
                                     types.front(), place, Shortened(type)));
  });
}

bool ReadToolResult(FieldReader* fields, std::string_view name,
                    std::span<const std::string_view> types, std::string* text) {
  return ReadParts(fields, name, types, text, [&](std::size_t place, const std::string& type) {
    fields->LeaveOut(fmt::format("{}[{}].type", name, place), type);
    *text += fmt::format("[{} left out: only text can be read here]", type);
  });
}

}  // namespace foretoken::server
