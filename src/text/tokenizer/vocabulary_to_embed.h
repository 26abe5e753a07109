#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/embedded_vocabulary.h"

namespace foretoken {

/// A folder's tokenizer in the form that model files carry: EmbeddedVocabulary with texts of its
/// own.
struct VocabularyToEmbed {
  std::string model;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int> types;
  std::vector<std::string> merges;
  std::optional<Token> bos;
  std::optional<Token> eos;
  std::optional<Token> eot;
  std::optional<Token> eom;
  std::optional<Token> unknown;
  bool add_bos = false;
  bool add_space_prefix = true;
  bool remove_extra_whitespaces = false;
  ChatTemplates chat_templates;

  /// Borrows this.
  EmbeddedVocabulary View() const;
};

/// Reads the tokenizer of a Hugging Face folder whose model has `outputs` logits, up to which ids
/// that no token has are filled, and ends texts with `ends`. Refuses one that model files cannot
/// say: read back, it would be another.
Result<VocabularyToEmbed> ReadVocabularyToEmbed(const std::filesystem::path& folder, int outputs,
                                                std::span<const Token> ends);

}  // namespace foretoken
