#pragma once

#include "foretoken/tokenizer.h"

namespace foretoken {

/// Loads tokenizer.json (byte-level BPE) or tokenizer.model (SentencePiece) from a Hugging Face
/// folder, with the special tokens and chat template of tokenizer_config.json.
Result<std::unique_ptr<Tokenizer>> LoadTokenizerFolder(const std::filesystem::path& directory);

/// An error that names the first token which differs, or nothing where both vocabularies agree
/// (the draft's may be shorter or longer by unused ids beyond the common part, and marks such as
/// <tool_call> may be special in one only).
Status CheckSameVocabulary(const Tokenizer& target, const Tokenizer& draft);

}  // namespace foretoken
