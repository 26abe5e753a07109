#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

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
  std::vector<Token> ends;   ///< Further ones that end a text.
  std::optional<Token> unknown;
  std::optional<bool> add_bos;  ///< Nothing: as is usual for its kind.
  bool add_space_prefix = true;
  bool remove_extra_whitespaces = false;
  ChatTemplates chat_templates;
};

/// The tokens of a vocabulary that no text is made of, ascending.
struct UnwrittenTokens {
  /// Spelled as another token is. Of those with one spelling the file's keys, or else their types,
  /// say which stands in texts, marks before ordinary ones; else it is the first.
  std::vector<Token> spare;
  std::vector<Token> empty;  ///< Without a spelling.

  bool Has(std::size_t id) const;
};
UnwrittenTokens FindUnwritten(const EmbeddedVocabulary& vocabulary);

/// The tokenizer, with the ids that the folder behind the file gives. `where` names the file in
/// errors.
Result<std::unique_ptr<Tokenizer>> TokenizerFromEmbedded(const EmbeddedVocabulary& vocabulary,
                                                         std::string_view where);

}  // namespace foretoken
