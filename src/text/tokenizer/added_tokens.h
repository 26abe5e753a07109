#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// A token that is recognised in the text by its spelling, before the vocabulary's own rules.
struct AddedToken {
  Token id = -1;
  std::string content;
  bool special = false;   ///< Recognised only where the caller asks for special tokens.
  bool lstrip = false;    ///< Swallows the white space before it.
  bool rstrip = false;    ///< Swallows the white space after it.
  bool in_model = false;  ///< SentencePiece: a user-defined piece of the model itself.
};

/// A stretch of ordinary text and the added token that ends it (nullptr at the end of the text).
struct TextPart {
  std::string_view text;
  const AddedToken* token = nullptr;
};

/// The added tokens of a vocabulary. Immutable; neither copied nor moved, as parts point into it.
class AddedTokens {
 public:
  /// Longer spellings are refused by the loaders.
  static constexpr std::size_t kMaxLength = 512;

  explicit AddedTokens(std::vector<AddedToken> tokens);
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;

  /// nullptr where no added token is spelled so.
  const AddedToken* Find(std::string_view content) const;
  const AddedToken* FindSpecial(std::string_view content) const;

  /// Cuts `text` at the added tokens in it, leftmost first and longest first; special ones count
  /// only with `parse_special`. There is always a last part without a token.
  std::vector<TextPart> Split(std::string_view text, bool parse_special) const;
  /// Whether a special token may stand in bytes [begin, end) of a text.
  using MayStand = std::function<bool(std::size_t begin, std::size_t end)>;
  std::vector<TextPart> Split(std::string_view text, const MayStand& may_be_special) const;

 private:
  const AddedToken* MatchAt(std::string_view text, std::size_t begin,
                            const MayStand& may_be_special) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string_view, const AddedToken*> by_content_;
  std::vector<std::size_t> lengths_;  // of the spellings, descending, without repeats
  std::array<bool, 256> starts_{};    // bytes that some spelling starts with
};

}  // namespace foretoken
