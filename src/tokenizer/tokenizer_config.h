#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/added_tokens.h"

namespace foretoken {

/// What the files beside a vocabulary say about it: tokenizer_config.json, and where that is
/// silent special_tokens_map.json, added_tokens.json and chat_template.jinja.
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
  /// The text of the (default) chat template; empty where there is none.
  std::string chat_template;
  /// What the template calls special tokens: bos_token, eos_token, pad_token ...
  std::map<std::string, std::string> marks;
};

/// Reads the files in `directory`; a file that is absent says nothing, a malformed one is an error.
Result<TokenizerConfig> ReadTokenizerConfig(const std::filesystem::path& directory);

}  // namespace foretoken
