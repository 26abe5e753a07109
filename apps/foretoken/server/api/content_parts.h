#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/foretoken/server/api/field_reader.h"

namespace foretoken::server {

// The content of a message: a text, or a list of parts of which this server reads those that are.

/// The types of parts that are text, in the APIs that have such parts.
inline constexpr std::string_view kTextParts[] = {"text", "input_text", "output_text"};
/// The `type` of a part of a content; empty where it says none.
std::string PartType(const Json& part);
/// The text of such a part: of one of the `types`, of a refusal, which is what an assistant said,
/// of a document or a search's result that is given as text. Nothing where it is no text.
std::optional<std::string> TextOfPart(const Json& part, std::span<const std::string_view> types);
/// Reads text: a string, or an array of parts with a `text` and one of the `types`. Whether the
/// field is there.
bool ReadTextField(FieldReader* fields, std::string_view name,
                   std::span<const std::string_view> types, std::string* text);
/// The same of what a tool has answered, of which parts that are no text are left out: a chat would
/// never get past a tool that answers with an image.
bool ReadToolResult(FieldReader* fields, std::string_view name,
                    std::span<const std::string_view> types, std::string* text);

}  // namespace foretoken::server
