#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"
#include "foretoken/types.h"

namespace foretoken {

class TokenConstraint;

inline constexpr int kMaxTopLogprobs = 100;

/// Every option that shapes the distribution of the next token. The defaults are greedy.
/// Order of application: repetition penalty (positive logits divided, negative multiplied),
/// frequency and presence penalty, logit bias, constraint; then, on the probabilities at the
/// temperature, top-k, top-p over what top-k keeps, and min-p.
struct SamplingParams {
#define FORETOKEN_SAMPLING_FIELD(type, name, default_value, ...) type name = default_value;
#include "foretoken/tables/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD

  std::vector<std::pair<Token, float>> logit_bias;
  /// What the output must match: tokens that do not fit are left out. May be null; used by one
  /// engine (TokenConstraint).
  std::shared_ptr<TokenConstraint> constraint;
  std::uint64_t seed = 0;
  int top_logprobs = -1;  ///< -1: none; 0: of the chosen token; n: and of the n most likely.

  bool has_penalties() const {
    return penalty_window != 0 &&
           (repetition_penalty != 1.0F || frequency_penalty != 0.0F || presence_penalty != 0.0F);
  }
  bool has_filters() const { return top_k > 0 || top_p < 1.0F || min_p > 0.0F; }
};

/// When a receipt has a field: those that were added later are left out at their defaults, so that
/// receipts stay what they were.
enum class InReceipt : std::uint8_t { kAlways, kUnlessDefault };

/// A row of sampling_fields.inc. Numbers are float or int.
template <typename Number>
struct SamplingField {
  Number SamplingParams::*member;
  const char* name;  ///< As in "top_k".
  Number by_default;
  Number least;
  Number most;
  InReceipt receipt;
  const char* flags;  ///< "--temp,--temperature"; empty: none.
  const char* value;  ///< How help calls the flag's value.
  const char* help;

  bool has_flag() const { return *flags != '\0'; }
  /// The first of its names on the command line, without the hyphens: "temp".
  std::string_view flag() const {
    const std::string_view names = flags;
    return has_flag() ? names.substr(2, names.find(',') - 2) : names;
  }
};

/// Calls `visit` with the SamplingField of each row, in order.
template <typename Visit>
void ForEachSamplingField(Visit&& visit) {
  using enum InReceipt;
  constexpr int kMostInt = std::numeric_limits<int>::max();
#define FORETOKEN_SAMPLING_FIELD(type, name, default_value, least, most, receipt, flags, value, \
                                 help)                                                          \
  visit(SamplingField<type>{&SamplingParams::name, #name, default_value, least, most, receipt,  \
                            flags, value, help});
#include "foretoken/tables/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
}

/// A token and its natural-log probability.
struct TokenLogprob {
  Token token = -1;
  float logprob = 0;
};

/// Refuses values outside their ranges with one sentence that names the option.
Status ValidateSamplingParams(const SamplingParams& params, int vocabulary);

}  // namespace foretoken
