#include "foretoken/sampling.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/result.h"
#include "foretoken/constraint.h"

namespace foretoken {
namespace {

template <typename Number>
Status CheckRange(const SamplingField<Number>& field, Number value) {
  if (value >= field.least && value <= field.most) return {};
  if (field.most == std::numeric_limits<Number>::max()) {
    return InvalidInput(
        fmt::format("{} is {}; it must be at least {}.", field.name, value, field.least),
        field.name);
  }
  return InvalidInput(fmt::format("{} is {}; it must be between {} and {}.", field.name, value,
                                  field.least, field.most),
                      field.name);
}

}  // namespace

Status ValidateSamplingParams(const SamplingParams& params, int vocabulary) {
  Status in_range;
  ForEachSamplingField([&](const auto& field) {
    if (in_range.ok()) in_range = CheckRange(field, params.*field.member);
  });
  FT_RETURN_IF_ERROR(in_range);
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
