#include "apps/foretoken/server/request_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "apps/foretoken/server/service.h"

namespace foretoken::server {

std::optional<ApiError> CheckMode(const std::optional<PlanOptions>& plan, const Engine& engine) {
  if (!plan || !plan->mode || engine.Offers(*plan->mode)) return std::nullopt;
  std::vector<std::string_view> names;
  for (const Mode mode : OfferedModes(engine)) names.push_back(ModeName(mode));
  return ApiError{
      .message = fmt::format("mode '{}' is not offered by this server; choose one of {}",
                             ModeName(*plan->mode), fmt::join(names, ", ")),
      .param = "speculative.mode"};
}

std::optional<ApiError> CheckLengths(const Door& door, const ApiRequest& api, PromptTooLong bounds,
                                     std::size_t longest_token) {
  constexpr std::size_t kFolding = 4;
  std::size_t longest = api.chat.variables.size() + api.chat.tools.size();
  for (const ChatMessage& message : api.chat.messages) {
    longest += message.content.size() + message.more.size();
  }
  for (const ApiPrompt& prompt : api.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text != nullptr) longest = std::max(longest, text->size());
    const auto* gap = std::get_if<ApiGap>(&prompt);
    if (gap != nullptr) longest = std::max(longest, gap->before.size() + gap->behind.size());
  }
  bounds.tokens = longest / (kFolding * longest_token);
  bounds.at_least = true;
  if (bounds.tokens <= bounds.most) return std::nullopt;
  return Refusal(bounds, std::string(door.prompt));
}

std::optional<ApiError> CheckVocabulary(const Door& door, std::span<const Token> tokens,
                                        int vocabulary) {
  for (const Token token : tokens) {
    if (token >= 0 && token < vocabulary) continue;
    return ApiError{
        .message = fmt::format("'{}' has token {}, which is outside the vocabulary of {} tokens",
                               door.prompt, token, vocabulary),
        .param = std::string(door.prompt)};
  }
  return std::nullopt;
}

std::optional<ApiError> CheckEmbeddings(const Door& door, const ApiRequest& api, int hidden) {
  constexpr std::int64_t kMostNumbers = std::int64_t{1} << 23;  // About 100 MB of text.
  if (!api.embedding.has_value()) return std::nullopt;
  if (api.embedding->dimensions.value_or(hidden) != hidden) {
    return ApiError{.message = fmt::format("'dimensions' must be {}, which this model's embeddings "
                                           "have: a part of one means nothing",
                                           hidden),
                    .param = "dimensions"};
  }
  const std::int64_t most = std::max<std::int64_t>(1, kMostNumbers / hidden);
  if (api.choices() <= most) return std::nullopt;
  return ApiError{
      .message = fmt::format("embeddings of {} numbers are answered for {} texts at once: {}",
                             hidden, most, FewerWith(door, api)),
      .param = std::string(door.prompt)};
}

std::optional<ApiError> CheckPrediction(const ApiRequest& api, int context,
                                        std::size_t longest_token) {
  const std::size_t most = context * longest_token;
  if (api.prediction.size() <= most) return std::nullopt;
  return ApiError{
      .message = fmt::format(
          "'prediction' has {} bytes, more than the {} tokens of the context can hold; shorten it",
          api.prediction.size(), context),
      .param = "prediction"};
}

std::string FewerWith(const Door& door, const ApiRequest& api) {
  return api.in_bits() ? fmt::format("send fewer texts in '{}'", door.prompt)
                       : std::string("lower 'n'");
}

std::optional<ApiError> CheckTotals(const Door& door, const ApiRequest& api, const Totals& totals,
                                    std::int64_t most) {
  const auto& [tokens, prompt_logprobs, output_logprobs] = totals;
  if (tokens > most && api.in_bits()) {
    return ApiError{
        .message = fmt::format(
            "the texts come to {} tokens, more than the {} that one request may have: {}", tokens,
            most, FewerWith(door, api)),
        .param = std::string(door.prompt)};
  }
  if (tokens > most) {
    return ApiError{.message = fmt::format(
                        "prompts and outputs of all choices may come to {} tokens, more than the "
                        "{} that one request may have: ask for fewer choices or lower '{}'",
                        tokens, most, door.limit),
                    .param = std::string(door.limit)};
  }
  if (prompt_logprobs > 2 * most) {
    return ApiError{
        .message = fmt::format("the log-probabilities of the prompts come to {}, more than the {} "
                               "that one request may have: lower 'logprobs', or send fewer prompts",
                               prompt_logprobs, 2 * most),
        .param = "logprobs"};
  }
  if (output_logprobs <= 4 * most) return std::nullopt;
  return ApiError{.message = fmt::format(
                      "the log-probabilities of the outputs may come to {}, more than the {} that "
                      "one request may have: ask for fewer of a token, or lower '{}'",
                      output_logprobs, 4 * most, door.limit),
                  .param = std::string(door.limit)};
}

}  // namespace foretoken::server
