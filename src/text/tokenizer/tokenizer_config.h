#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/added_tokens.h"

namespace foretoken {

/// The chat templates that a model's files have, in Jinja, by name.
struct ChatTemplates {
  static constexpr const char* kUsual = "default";
  static constexpr const char* kWithTools = "tool_use";  ///< For chats with tools, if it is there.

  std::map<std::string, std::string> by_name;
  std::string fault;  ///< Why what the files say is none; empty: nothing is wrong.

  /// Empty where there is none.
  std::string Find(const std::string& name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? std::string() : found->second;
  }
};

/// What the files beside a vocabulary say about it: tokenizer_config.json, and where that is
/// silent special_tokens_map.json, added_tokens.json, chat_template.jinja and
/// additional_chat_templates.
struct TokenizerConfig {
  std::string tokenizer_class;
  /// How bos and eos are spelled; empty for an explicit null, nullopt where nothing is said.
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  /// Spellings of further tokens that end a text.
  std::vector<std::string> ends;
  std::optional<bool> add_bos;
  /// Whether text after a special token gets SentencePiece's leading space again.
  bool legacy = true;
  /// Spellings declared special without an id.
  std::vector<std::string> special;
  /// Tokens declared with an id.
  std::vector<AddedToken> added;
  ChatTemplates chat_templates;
  /// What the template calls special tokens: bos_token, eos_token, pad_token ...
  std::map<std::string, std::string> marks;
};

/// Reads the files in `directory`; a file that is absent says nothing, a malformed one is an error.
Result<TokenizerConfig> ReadTokenizerConfig(const std::filesystem::path& directory);

}  // namespace foretoken
