#include "engine/request_rules.h"

#include <fmt/core.h>

#include "foretoken/sampling.h"

namespace foretoken {
namespace {

constexpr int kMaxStopStrings = 16;

}  // namespace

Status ValidateRequest(const Request& request, const RequestLimits& limits) {
  if (request.prompt.empty()) {
    return InvalidInput("the prompt is empty: give at least one token", "prompt");
  }
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i] < 0 || request.prompt[i] >= limits.vocabulary) {
      return InvalidInput(fmt::format("prompt token {} is {}, outside the vocabulary of {}", i,
                                      request.prompt[i], limits.vocabulary),
                          "prompt");
    }
  }
  if (static_cast<std::int64_t>(request.prompt.size()) >= limits.max_context) {
    return InvalidInput(
        fmt::format("the prompt has {} tokens, but the context holds {} and needs room for at "
                    "least one more: shorten the prompt",
                    request.prompt.size(), limits.max_context),
        "prompt");
  }
  if (request.stop.max_tokens < 1) {
    return InvalidInput(
        fmt::format("max tokens must be at least 1, not {}", request.stop.max_tokens),
        "max_tokens");
  }
  if (!request.stop.stop_strings.empty() && !limits.has_tokenizer) {
    return InvalidInput("stop strings need a tokenizer, and this model has none", "stop_strings");
  }
  if (request.stop.stop_strings.size() > kMaxStopStrings) {
    return InvalidInput(fmt::format("{} stop strings were given; at most {} are allowed",
                                    request.stop.stop_strings.size(), kMaxStopStrings),
                        "stop_strings");
  }
  for (const std::string& stop : request.stop.stop_strings) {
    if (stop.empty()) {
      return InvalidInput("a stop string is empty: give at least one character", "stop_strings");
    }
  }
  if (request.sampling.constraint != nullptr && request.stop.ignore_eos) {
    return InvalidInput(
        "ignoring end of sequence does not go with a grammar, which says where the text ends",
        "ignore_eos");
  }
  return ValidateSamplingParams(request.sampling, limits.vocabulary);
}

}  // namespace foretoken
