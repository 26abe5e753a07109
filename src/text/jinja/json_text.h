#pragma once

#include "json/json.h"

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// How JSON is written: as Python's json.dumps has it.
struct JsonStyle {
  bool ascii = false;  ///< Other characters as \uXXXX.
  bool sort_keys = false;
  bool lines = false;  ///< Each item on a line of its own, behind `indent` for each level.
  Text indent;
  Text between_items;  ///< ", " or ","
  Text behind_keys;    ///< ": " or ":"
};

/// Appends a value as JSON.
bool AppendJson(const Value& value, const JsonStyle& style, TextBuilder* builder);

/// JSON as values. Its strings are input.
Value FromJson(Workspace* workspace, const Json& json);

}  // namespace foretoken::jinja
