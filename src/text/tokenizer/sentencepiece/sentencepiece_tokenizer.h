#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/embedded_vocabulary.h"
#include "text/tokenizer/sentencepiece/pieces.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace foretoken {

/// Marks such as <|im_start|> are special even where no configuration says so.
inline bool LooksLikeMark(std::string_view spelling) {
  return spelling.size() > 4 && spelling.starts_with("<|") && spelling.ends_with("|>");
}

/// One piece of a SentencePiece model file.
struct SentencePiece {
  enum Type { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  std::string spelling;
  float score = 0;
  Type type = kNormal;
  /// Where in the file the type is written, a single byte; 0 where it is left to its default.
  std::size_t type_offset = 0;
};

/// What Foretoken must know of a model file before it hands it to the library.
struct SentencePieceModel {
  std::vector<SentencePiece> pieces;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool has_chars_map = false;
  bool unigram = true;  ///< The library's default; else BPE.
};

/// Reads and validates a serialised model: well-formed, every piece valid UTF-8 of bounded length
/// with a finite score, BPE or unigram, and a normalisation map that stays within itself (the
/// library trusts it). `where` names the file in errors.
Result<SentencePieceModel> ParseSentencePieceModel(std::string_view file, std::string_view where);

/// Bytes that, appended to a serialised model, turn its dummy prefix off.
std::string_view WithoutDummyPrefixSuffix();

/// What stands in a model file, unused, for a token that no text is made of.
struct StandIn {
  Token id = -1;
  std::string_view spelling;  ///< How the token itself is spelled; empty where it has no spelling.
};

/// A tokenizer from the bytes of a SentencePiece model file, which `where` names in errors.
Result<std::unique_ptr<Tokenizer>> LoadSentencePiece(std::string file, std::string_view where,
                                                     const TokenizerConfig& config,
                                                     std::span<const StandIn> stand_ins = {});

/// A tokenizer from a vocabulary of the kind "llama", whose tokens, types and ids are checked: the
/// library is given the model file from which such a vocabulary comes.
Result<std::unique_ptr<Tokenizer>> LoadEmbeddedSentencePiece(const EmbeddedVocabulary& vocabulary,
                                                             std::string_view where,
                                                             const TokenizerConfig& config);

}  // namespace foretoken
