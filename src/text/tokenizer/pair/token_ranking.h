#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// Tokens of a vocabulary, those first that some texts have most often.
struct TokenRanking {
  struct Entry {
    Token token = 0;
    std::uint64_t count = 0;  ///< How often the texts have it: never more than the one before.

    bool operator==(const Entry&) const = default;
  };

  std::string tokenizer;  ///< Tokenizer::fingerprint
  int vocabulary = 0;
  std::vector<Entry> entries;  ///< Each token at most once.

  bool operator==(const TokenRanking&) const = default;
};

/// Ranks what there is any of, by `counts` of all tokens; of those alike the lower ids first.
TokenRanking RankTokens(const Tokenizer& tokenizer, std::span<const std::uint64_t> counts);

/// A ranking as text: a line that says which tokenizer it is of and how many tokens that has, then
/// for each entry one of token and count.
std::string FormatTokenRanking(const TokenRanking& ranking);

/// The other way round. `where` begins the sentence that refuses what is none.
Result<TokenRanking> ParseTokenRanking(std::string_view text, std::string_view where);

/// Refuses a ranking of another tokenizer's tokens.
Status CheckRanks(const TokenRanking& ranking, const Tokenizer& tokenizer, std::string_view where);

}  // namespace foretoken
