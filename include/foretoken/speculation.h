#pragma once

#include <cstdint>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

/// How a sequence's next tokens are proposed.
enum class Mode : std::uint8_t {
  kAr,     ///< Not at all: one token per target pass.
  kSd,     ///< A draft model on the target's device, between two target passes.
  kSsd,    ///< A draft model on its own device, while the target verifies (Saguaro).
  kNgram,  ///< Prompt lookup.
  kSssd,   ///< Retrieval from prompt, output and datastore, fused into a tree.
  kRest,   ///< Baseline: retrieval from a datastore only, as REST does.
  kTrie,   ///< Baseline: a trie over prompt and outputs, as Lookahead does.
  kAuto,   ///< Whichever of these the planner expects to be fastest, round by round.
};
inline constexpr int kModes = 8;

/// The mode of a name that users type ("ssd"); the error lists them all.
Result<Mode> ParseMode(std::string_view name);
std::string_view ModeName(Mode mode);

/// What proposes next when the speculation cache has no answer.
enum class Fallback : std::uint8_t {
  kJit,        ///< The draft model, just in time, unless that would hold other sequences.
  kNgram,      ///< Prompt lookup, at once.
  kRetrieval,  ///< What mode kSssd would propose, at once.
  kRandom,     ///< Uniformly random tokens: the paper's baseline.
  kNone,       ///< Nothing: one plain row.
  kAuto,       ///< By Theorem 17's rule on measured times.
};

Result<Fallback> ParseFallback(std::string_view name);
std::string_view FallbackName(Fallback fallback);

/// How a proposal is verified.
enum class Verification : std::uint8_t {
  kSharedNoise,  ///< By what the target's own noise chooses: the same tokens in every mode.
  kRejection,    ///< By Leviathan's rule and its extension to trees: the same distribution.
};

Result<Verification> ParseVerification(std::string_view name);
std::string_view VerificationName(Verification verification);

/// Which bonus tokens the speculation cache prepares under rejection verification.
enum class CacheOrder : std::uint8_t {
  kNoise,        ///< The likeliest under the noise that will pick the bonus token.
  kProbability,  ///< The draft's likeliest, as in the paper.
};

Result<CacheOrder> ParseCacheOrder(std::string_view name);

/// How F_k follows from a cache budget B while a sequence is decoded.
enum class FanoutRule : std::uint8_t {
  kGiven,      ///< Not at all: the shapes of the plan stay.
  kUniform,    ///< As equal as whole numbers allow.
  kGeometric,  ///< Theorem 12, with the acceptance rate and r that are observed.
  kPlanned,    ///< Theorem 18 on the hit curves that are observed.
};

}  // namespace foretoken
