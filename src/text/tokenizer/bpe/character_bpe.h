#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer/bpe/bpe.h"
#include "text/tokenizer/bpe/space_rule.h"
#include "text/tokenizer/tokenizer_base.h"

namespace foretoken {

/// What a token of a vocabulary of characters stands for: spelled "<0x0A>" one byte, else its
/// spelling with spaces for their marks.
std::string BytesOfCharacters(std::string_view spelling);

/// A tokenizer whose words begin as characters, of which those that are no token are the tokens of
/// their bytes: the vocabulary has one of each byte.
std::unique_ptr<Tokenizer> MakeCharacterBpe(const Vocabulary& vocabulary,
                                            std::span<const BpeMerge> merges, SpaceRule spaces);

}  // namespace foretoken
