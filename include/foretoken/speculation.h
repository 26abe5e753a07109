#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/mode.h"
#include "foretoken/result.h"

namespace foretoken {

/// Proposed tokens per sequence and round; with the root that makes a pass of at most 64 rows.
inline constexpr int kMaxProposal = 63;
/// Bonus tokens prepared for one outcome node, at most.
inline constexpr int kMaxFanout = 15;
/// Children of one node of a drafted tree, at most.
inline constexpr int kMaxTreeWidth = 8;
/// Branches of one sequence's speculation cache, at most.
inline constexpr int kMaxCacheBudget = 256;

/// How a proposal is verified.
enum class Verification : std::uint8_t {
  kSharedNoise,  ///< By what the target's own noise chooses: the same tokens in every mode.
  kRejection,    ///< By Leviathan's rule and its extension to trees: the same distribution.
};

Result<Verification> ParseVerification(std::string_view name);
std::string_view VerificationName(Verification verification);

/// Which proposed tokens are accepted although the target's own choice is another: faster, and NOT
/// the model's output any more.
enum class Lossy : std::uint8_t {
  kNone,         ///< None: exact.
  kTypical,      ///< Medusa's rule: tokens with p(x) > min(epsilon, delta exp(-H(p))).
  kTopKRelaxed,  ///< Tokens among the target's k likeliest with p(x) >= p(likeliest) - margin.
  /// Tokens that a trained head finds right, reading the target's state behind them.
  kJudge,
};

struct LossyRule {
  Lossy kind = Lossy::kNone;
  float epsilon = 0.09F;  ///< Epsilon of kTypical.
  float delta = 0.3F;     ///< Delta of kTypical.
  int top_k = 10;         ///< The k of kTopKRelaxed.
  float margin = 0.6F;    ///< The margin of kTopKRelaxed.
  std::string judge;      ///< The folder of kJudge's head.
  float approval = 0.5F;  ///< How sure the head of kJudge must be.
};

Result<Lossy> ParseLossy(std::string_view name);
std::string_view LossyName(Lossy lossy);

/// Which bonus tokens the speculation cache prepares under rejection verification.
enum class CacheOrder : std::uint8_t {
  kNoise,        ///< The likeliest under the noise that will pick the bonus token.
  kProbability,  ///< The draft's likeliest, as in the paper.
};

std::string_view CacheOrderName(CacheOrder order);
Result<CacheOrder> ParseCacheOrder(std::string_view name);

/// How F_k follows from a cache budget B while a sequence is decoded.
enum class FanoutRule : std::uint8_t {
  kGiven,      ///< Not at all: the shapes of the plan stay.
  kUniform,    ///< As equal as whole numbers allow.
  kGeometric,  ///< Theorem 12, with the acceptance rate and r that are observed.
  kPlanned,    ///< Theorem 18 on the hit curves that are observed.
};

/// Parallel speculation as published, each as settings of mode ssd (docs/understand/ssd.md says
/// what of a method that does not capture).
enum class SsdPreset : std::uint8_t {
  kSaguaro,     ///< F bonus tokens at every node of a chain.
  kPearl,       ///< Only the outcome in which all tokens are accepted, with one bonus token.
  kAmusd,       ///< The same; the methods differ in what is no setting.
  kSpecBranch,  ///< One branching point: several bonus tokens behind the last proposed one.
  kSwiftSpec,  ///< A token tree, re-rooted at the outcome: one bonus token at every node of a tree.
  kMirrorSd,   ///< Complete branches behind two bonus tokens at every node of a chain.
  kDsi,        ///< As kPearl; a miss is answered by a plain row.
};

std::string_view SsdPresetName(SsdPreset preset);
Result<SsdPreset> ParseSsdPreset(std::string_view name);

/// How many bonus tokens the speculation cache prepares for the outcomes of a proposal.
struct Fanout {
  FanoutRule rule = FanoutRule::kUniform;
  std::vector<int> counts;  ///< kGiven: F at every node, or F_0 to F_K. Else empty.
};

/// SpeculationPlan::speculation_length as large as pays: a row for each candidate whose chance of
/// being accepted is worth what the row costs. Of modes that do not tell chances, as by the knee.
inline constexpr int kAutoSpeculationLength = -1;
/// SpeculationPlan::speculation_length by the machine's knee and the batch.
inline constexpr int kKneeSpeculationLength = -2;

/// K that mode auto chooses at most, where nothing else is asked for.
inline constexpr int kMaxPlannedLookahead = 12;

/// What a caller asks of speculation (plan_fields.inc). What is left out is the engine's own, or
/// what follows from mode and machine.
struct PlanOptions {
#define FORETOKEN_PLAN_FIELD(type, name, ...) std::optional<type> name;
#include "foretoken/tables/plan_fields.inc"
#undef FORETOKEN_PLAN_FIELD
};

/// Who may say a field of PlanOptions.
enum class PlanScope : std::uint8_t { kRequest, kEngine };

/// A row of plan_fields.inc.
template <typename Value>
struct PlanField {
  std::optional<Value> PlanOptions::*member;
  const char* name;  ///< As in "tree_width".
  double least;      ///< The least number that is allowed.
  double most;
  std::string_view words;  ///< What -1, -2 and so on are called: "auto|knee".
  PlanScope scope;
  const char* flags;  ///< "-k,--lookahead"; empty: none.
  const char* value;  ///< How help calls the flag's value.
  const char* help;
};

/// Calls `visit` with the PlanField of each row, in order.
template <typename Visit>
void ForEachPlanField(Visit&& visit) {
  using enum PlanScope;
#define FORETOKEN_PLAN_FIELD(type, name, least, most, words, scope, flags, value, help) \
  visit(PlanField<type>{&PlanOptions::name, #name, least, most, words, scope, flags, value, help});
#include "foretoken/tables/plan_fields.inc"
#undef FORETOKEN_PLAN_FIELD
}

/// How a caller's user writes a field of PlanOptions: "tree_width" may be "--tree-width".
using FieldSpelling = std::string (*)(std::string_view field);

/// As the public headers write it.
inline std::string PlainSpelling(std::string_view field) { return std::string(field); }

/// Refuses options that say nothing to any of `modes`, or are not for one of them.
Status CheckOptions(const PlanOptions& options, std::span<const Mode> modes,
                    Verification verification, FieldSpelling spell = PlainSpelling);

/// Refuses options that no engine can follow, whatever its limits.
Status CheckShapes(const PlanOptions& options, FieldSpelling spell = PlainSpelling);

}  // namespace foretoken
