#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// Where clients ask how well documents answer a query, as Jina, Cohere and llama.cpp have it, of
/// models that were trained to say yes or no to that (Qwen3-Reranker).
const Door& RerankDoor();

/// How such a model is asked about a text, as Qwen3-Reranker's makers document it: special tokens
/// count in what stands before and behind the text, and none of the text's own.
std::vector<Token> RankTokens(const Tokenizer& tokenizer, const std::string& text);

/// The tokens by which it says yes and no; none where the vocabulary has none for either.
struct YesAndNo {
  Token yes = -1;
  Token no = -1;
};
std::optional<YesAndNo> FindYesAndNo(const Tokenizer& tokenizer);

/// What a token's logit is raised by that must come: no other is then more likely.
inline constexpr float kMustCome = 1e5F;

}  // namespace foretoken::server
