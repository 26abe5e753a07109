#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apps/foretoken/server/api/field_reader.h"

namespace foretoken::server {

/// What a request's output must match.
struct OutputFormat {
  std::string grammar;  ///< ParseGrammar's notation; empty: anything goes.
  std::string field;    ///< The request's field that asks for it, as OpenAI's `param`.
};

/// Reads `response_format` (text, json_object or json_schema, as OpenAI has them, or with the
/// `schema` in it, as others do) and `grammar`. `body` is the text that `fields` were parsed from:
/// the order of a schema's properties matters and parsed fields have lost it. Whether a `grammar`
/// makes sense is for its compiler to say.
void ReadOutputFormat(std::string_view body, FieldReader* fields, OutputFormat* format);

/// Reads what other servers have in the place of that: `json_schema`, `format`, `guided_json` and
/// its like, `structured_outputs`. What this server does not hold an output to is refused: such a
/// wish is not one that may be left out. After ReadOutputFormat.
void ReadFormatsOfOthers(std::string_view body, FieldReader* fields, OutputFormat* format);

/// Reads the last member of `path`, a JSON Schema: `path` is the way to it through `body`, and
/// `fields` are those of the object that it is in.
void ReadSchemaField(std::string_view body, std::span<const std::string_view> path,
                     FieldReader* fields, OutputFormat* format);
/// The same with the schema's `name`, `description` and `strict` beside it.
void ReadNamedSchema(std::string_view body, std::span<const std::string_view> path,
                     FieldReader* fields, OutputFormat* format);

}  // namespace foretoken::server
