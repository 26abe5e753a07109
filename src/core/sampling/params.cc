#include "foretoken/sampling.h"

#include <fmt/core.h>

#include <cmath>

#include "base/result.h"
#include "foretoken/constraint.h"

namespace foretoken {
namespace {

Status CheckRange(const char* name, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  return InvalidInput(
      fmt::format("{} is {}; it must be between {} and {}.", name, value, low, high), name);
}

}  // namespace

Status ValidateSamplingParams(const SamplingParams& params, int vocabulary) {
  FT_RETURN_IF_ERROR(CheckRange("temperature", params.temperature, 0.0F, 100.0F));
  if (params.top_k < 0) {
    return InvalidInput(
        fmt::format("top_k is {}; it must be positive, or 0 to keep all tokens.", params.top_k),
        "top_k");
  }
  FT_RETURN_IF_ERROR(CheckRange("top_p", params.top_p, 0.0F, 1.0F));
  FT_RETURN_IF_ERROR(CheckRange("min_p", params.min_p, 0.0F, 1.0F));
  FT_RETURN_IF_ERROR(CheckRange("repetition_penalty", params.repetition_penalty, 0.01F, 100.0F));
  FT_RETURN_IF_ERROR(CheckRange("frequency_penalty", params.frequency_penalty, -100.0F, 100.0F));
  FT_RETURN_IF_ERROR(CheckRange("presence_penalty", params.presence_penalty, -100.0F, 100.0F));
  if (params.penalty_window < -1) {
    return InvalidInput(
        fmt::format("penalty_window is {}; it must be a number of tokens, or -1 for all of them.",
                    params.penalty_window),
        "penalty_window");
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < 0 || token >= vocabulary) {
      return InvalidInput(
          fmt::format("logit_bias names token {}; tokens of this model are 0 to {}.", token,
                      vocabulary - 1),
          "logit_bias");
    }
    if (!std::isfinite(bias)) {
      return InvalidInput(
          fmt::format("logit_bias of token {} is {}; it must be finite.", token, bias),
          "logit_bias");
    }
  }
  if (params.constraint != nullptr && params.constraint->vocabulary() > vocabulary) {
    return InvalidInput(fmt::format("the grammar was compiled for {} tokens, but this model has "
                                    "{}: compile it for this model's tokenizer",
                                    params.constraint->vocabulary(), vocabulary),
                        "constraint");
  }
  if (params.top_logprobs < -1 || params.top_logprobs > kMaxTopLogprobs) {
    return InvalidInput(
        fmt::format("top_logprobs is {}; it must be between 0 and {}, or -1 for none.",
                    params.top_logprobs, kMaxTopLogprobs),
        "top_logprobs");
  }
  return {};
}

}  // namespace foretoken
