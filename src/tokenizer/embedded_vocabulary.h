#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// The tokenizer that a model file carries beside its weights (GGUF's tokenizer.ggml.* and
/// tokenizer.chat_template), as the file says it and nothing of it checked. Borrows the file.
struct EmbeddedVocabulary {
  /// What a token is, by its number in files.
  enum Type { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

  /// "llama" (SentencePiece), "gpt2" (byte-level BPE) or "gemma4" (BPE of characters).
  std::string model;
  std::string pre;  ///< gpt2: which family's words (bpe/bpe_family.h).
  std::vector<std::string_view> tokens;
  std::vector<float> scores;             ///< llama: one for each token; higher ones merge first.
  std::vector<int> types;                ///< A Type for each token.
  std::vector<std::string_view> merges;  ///< Others: two tokens with a space between.
  std::optional<Token> bos;
  std::optional<Token> eos;
  std::optional<Token> eot;  ///< Ends a turn.
  std::optional<Token> eom;  ///< Ends a message.
  std::optional<Token> unknown;
  std::optional<bool> add_bos;  ///< Nothing: as is usual for its kind.
  bool add_space_prefix = true;
  bool remove_extra_whitespaces = false;
  std::string chat_template;
};

/// The tokenizer, with the ids that the folder behind the file gives. `where` names the file in
/// errors.
Result<std::unique_ptr<Tokenizer>> TokenizerFromEmbedded(const EmbeddedVocabulary& vocabulary,
                                                         std::string_view where);

}  // namespace foretoken
