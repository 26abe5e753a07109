#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "apps/foretoken/server/api/api_json.h"
#include "apps/foretoken/server/api/api_request.h"
#include "apps/foretoken/server/api/door.h"
#include "foretoken/engine.h"

namespace foretoken::server {

// What a request may ask of a model, apart from what the engine's own rules say. Each gives the
// error to answer with.

/// Refuses a mode that the engine does not offer, with those that it does.
std::optional<ApiError> CheckMode(const std::optional<PlanOptions>& plan, const Engine& engine);

/// Refuses texts that cannot fit whatever their tokens are, before time and memory go into those: a
/// token has at most `longest_token` bytes, and tokenizers may fold what is written wider.
std::optional<ApiError> CheckLengths(const Door& door, const ApiRequest& api, PromptTooLong bounds,
                                     std::size_t longest_token);

/// Refuses a prediction of what cannot be an output, before time goes into its tokens.
std::optional<ApiError> CheckPrediction(const ApiRequest& api, int context,
                                        std::size_t longest_token);

/// Refuses tokens that there are none of: not every text goes to the engine at once, which would
/// say so.
std::optional<ApiError> CheckVocabulary(const Door& door, std::span<const Token> tokens,
                                        int vocabulary);

/// Refuses embeddings of another size than the model has, and more of them than a reply may hold.
std::optional<ApiError> CheckEmbeddings(const Door& door, const ApiRequest& api, int hidden);

/// How a client asks for less.
std::string FewerWith(const Door& door, const ApiRequest& api);

/// What all choices of a request come to at most.
struct Totals {
  std::int64_t tokens = 0;  ///< Tokens of prompts and outputs.
  std::int64_t prompt_logprobs = 0;
  std::int64_t output_logprobs = 0;
};
/// Refuses what takes more than one request may have.
std::optional<ApiError> CheckTotals(const Door& door, const ApiRequest& api, const Totals& totals,
                                    std::int64_t most);

}  // namespace foretoken::server
