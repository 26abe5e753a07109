#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken::jinja {

/// A word of a template.
struct Lexeme {
  enum class Kind {
    kData,        ///< Text between tags.
    kPrintBegin,  ///< {{
    kPrintEnd,
    kBlockBegin,  ///< {%
    kBlockEnd,
    kName,
    kString,  ///< Without its quotes and escapes.
    kInteger,
    kFloat,
    kOperator,
    kEnd,  ///< The end of the template.
  };

  Kind kind = Kind::kEnd;
  std::string text;
  int line = 1;

  bool IsName(std::string_view name) const { return kind == Kind::kName && text == name; }
  bool IsOperator(std::string_view name) const { return kind == Kind::kOperator && text == name; }
};

/// The words of a template, the last of them kEnd. White space around tags is what jinja2 leaves
/// with trim_blocks and lstrip_blocks, as chat templates are written for.
Result<std::vector<Lexeme>> ReadLexemes(std::string_view source);

}  // namespace foretoken::jinja
