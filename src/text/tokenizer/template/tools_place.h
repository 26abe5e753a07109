#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "json/json.h"
#include "text/jinja/template.h"

namespace foretoken {

/// Where a chat template looks for the functions that a model may call.
enum class ToolsPlace {
  kVariable,       ///< Its variable `tools`, a list.
  kSystemMessage,  ///< `tools` of the system message, the same list (GLM 4).
  /// `tools` of the system message, a text with what the functions are, as JSON (Phi-4 mini).
  kSystemText,
};

/// The first place of these that the template shows: told by rendering chats with a function.
/// `marks` are the template's variables for special tokens.
ToolsPlace FindToolsPlace(const jinja::Template& chat_template,
                          const std::map<std::string, std::string>& marks);

/// Puts the `tools` of a template's variables, where there are any, where it looks for them: there
/// is then a system message. One that has `tools` of its own keeps them.
Status PutTools(ToolsPlace place, Json* variables);

}  // namespace foretoken
