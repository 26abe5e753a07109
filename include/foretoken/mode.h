#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

/// What drafts: an entry of the registry, which is drafters.inc.
enum class DrafterId : std::uint8_t {
#define FORETOKEN_DRAFTER(Id, ...) k##Id,
#include "foretoken/tables/drafters.inc"
#undef FORETOKEN_DRAFTER
};

/// What a drafter works with besides the text so far.
enum class DrafterNeeds : std::uint8_t {
  kText,              ///< Nothing.
  kTextAndDatastore,  ///< A datastore too, where the request has one.
  kDatastore,         ///< A datastore, without which it finds nothing.
  kDraftModel,
  kDrafters,  ///< Other drafters, of which it is made.
};

enum class ProposalShape : std::uint8_t {
  kChain,       ///< Up to K tokens.
  kAsPlanned,   ///< A chain or a tree of ranked tokens, as PlanOptions::tree_width says.
  kTree,        ///< What followed elsewhere, up to PlanOptions::speculation_length rows.
  kPricedTree,  ///< The same; it knows its tokens' chances, so it can leave out what does not pay.
  kWindow,      ///< PlanOptions::window columns of K guesses, and as many n-grams as `guesses`.
};

enum class ProposalDistribution : std::uint8_t {
  kFixed,  ///< The text so far decides what is proposed: a point mass.
  kDrawn,  ///< Under rejection verification tokens are drawn, and come with their distribution.
};

/// An entry of the registry.
struct DrafterInfo {
  std::string_view name;
  std::string_view before;  ///< The mode in which it drafts between two passes; empty: none.
  /// The mode in which it drafts while the target verifies (SSD); empty: none.
  std::string_view during;
  DrafterNeeds needs = DrafterNeeds::kText;
  ProposalShape shape = ProposalShape::kChain;
  ProposalDistribution distribution = ProposalDistribution::kFixed;
  bool fallback = false;   ///< It may answer at once when the speculation cache has no answer.
  bool remembers = false;  ///< Its proposals may show texts of other sequences of the same scope.
  bool baseline = false;   ///< There to be compared with: mode auto leaves it out.
  /// The share of its tokens that is accepted, as far as one knows before any was verified.
  double usual_acceptance = 0.5;
};

inline constexpr auto kDrafters = std::to_array<DrafterInfo>({
#define FORETOKEN_DRAFTER(Id, ...) {__VA_ARGS__},
#include "foretoken/tables/drafters.inc"
#undef FORETOKEN_DRAFTER
});

constexpr std::size_t IndexOf(DrafterId drafter) { return static_cast<std::size_t>(drafter); }

constexpr const DrafterInfo& InfoOf(DrafterId drafter) { return kDrafters[IndexOf(drafter)]; }

/// Whether a draft model of its own is what drafts.
constexpr bool IsDraftModel(DrafterId drafter) {
  return InfoOf(drafter).needs == DrafterNeeds::kDraftModel;
}

/// Every draft model, in the registry's order: the first, the second, ...
inline constexpr auto kDraftModels = [] {
  constexpr auto kCount =
      std::ranges::count(kDrafters, DrafterNeeds::kDraftModel, &DrafterInfo::needs);
  std::array<DrafterId, kCount> models{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kDrafters.size(); ++i) {
    if (IsDraftModel(static_cast<DrafterId>(i))) models[count++] = static_cast<DrafterId>(i);
  }
  return models;
}();

/// The place of a draft model among kDraftModels.
constexpr std::size_t DraftIndex(DrafterId draft_model) {
  return std::ranges::find(kDraftModels, draft_model) - kDraftModels.begin();
}

/// A value for each key, which IndexOf gives a place.
template <typename Key, typename T, std::size_t kKeys>
struct ByKey : std::array<T, kKeys> {
  constexpr T& operator[](Key key) { return this->at(IndexOf(key)); }
  constexpr const T& operator[](Key key) const { return this->at(IndexOf(key)); }
};

/// A value for each drafter.
template <typename T>
using ByDrafter = ByKey<DrafterId, T, kDrafters.size()>;

/// Every drafter, in the registry's order.
inline constexpr auto kDrafterIds = [] {
  std::array<DrafterId, kDrafters.size()> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<DrafterId>(i);
  return ids;
}();

/// When a sequence's next tokens are drafted.
enum class Schedule : std::uint8_t {
  kNone,     ///< Not at all: one token per target pass.
  kBefore,   ///< On the target's device, between two of its passes.
  kDuring,   ///< On a device of its own, while the target verifies.
  kPlanned,  ///< As the planner expects to be fastest, round by round, by whatever drafter.
};

/// How a sequence's next tokens are proposed: when they are drafted, and by what.
struct Mode {
  Schedule schedule = Schedule::kNone;
  DrafterId drafter{};  ///< Where the schedule is kBefore or kDuring.

  constexpr bool drafts() const { return before() || during(); }
  constexpr bool before() const { return schedule == Schedule::kBefore; }
  constexpr bool during() const { return schedule == Schedule::kDuring; }
  constexpr bool planned() const { return schedule == Schedule::kPlanned; }
  friend constexpr auto operator<=>(const Mode&, const Mode&) = default;

  static const Mode kAr;     ///< No drafting: plain decoding.
  static const Mode kSd;     ///< The draft model, before the pass.
  static const Mode kSsd;    ///< The draft model, during the pass (Saguaro).
  static const Mode kNgram;  ///< Prompt lookup.
  static const Mode kSssd;   ///< Retrieval from prompt, output and datastore, fused into a tree.
  static const Mode kRest;   ///< Baseline: retrieval from a datastore only, as REST does.
  static const Mode kTrie;   ///< Baseline: a trie over prompt and outputs, as Lookahead does.
  static const Mode kAuto;   ///< Whichever of these the planner expects to be fastest.
};

inline constexpr Mode Mode::kAr{};
inline constexpr Mode Mode::kSd{Schedule::kBefore, DrafterId::kModel};
inline constexpr Mode Mode::kSsd{Schedule::kDuring, DrafterId::kModel};
inline constexpr Mode Mode::kNgram{Schedule::kBefore, DrafterId::kNgram};
inline constexpr Mode Mode::kSssd{Schedule::kBefore, DrafterId::kRetrieval};
inline constexpr Mode Mode::kRest{Schedule::kBefore, DrafterId::kRest};
inline constexpr Mode Mode::kTrie{Schedule::kBefore, DrafterId::kTrie};
inline constexpr Mode Mode::kAuto{.schedule = Schedule::kPlanned};

/// How many modes there are: plain, those of the drafters, and auto.
inline constexpr std::size_t kModeCount = [] {
  std::size_t count = 2;
  for (const DrafterInfo& info : kDrafters) count += !info.before.empty() + !info.during.empty();
  return count;
}();

/// Every mode: plain first, then the drafters' in the registry's order, auto last.
inline constexpr auto kModes = [] {
  std::array<Mode, kModeCount> modes{};
  std::size_t count = 1;
  for (const DrafterId id : kDrafterIds) {
    if (!InfoOf(id).before.empty()) modes[count++] = {Schedule::kBefore, id};
    if (!InfoOf(id).during.empty()) modes[count++] = {Schedule::kDuring, id};
  }
  modes[count] = Mode::kAuto;
  return modes;
}();

/// The mode's place in kModes; kModeCount of what is no mode.
constexpr std::size_t IndexOf(Mode mode) {
  return std::ranges::find(kModes, mode) - kModes.begin();
}

/// A value for each mode.
template <typename T>
using ByMode = ByKey<Mode, T, kModeCount>;

/// The mode of a name that users type ("ssd"); the error lists them all.
Result<Mode> ParseMode(std::string_view name);
/// "?" of what is no mode.
std::string_view ModeName(Mode mode);

/// Whether the mode cannot do without a draft model.
constexpr bool NeedsDraft(Mode mode) { return mode.drafts() && IsDraftModel(mode.drafter); }

/// Whether a draft model drafts on the target's device.
constexpr bool DraftsOnTarget(Mode mode) { return mode.before() && NeedsDraft(mode); }

/// Whether the mode proposes a tree of what followed elsewhere.
constexpr bool Retrieves(Mode mode) {
  const ProposalShape shape = InfoOf(mode.drafter).shape;
  return mode.drafts() && (shape == ProposalShape::kTree || shape == ProposalShape::kPricedTree);
}

/// Who made a proposal.
struct ProposalSource {
  enum class Kind : std::uint8_t {
    kNone,     ///< No proposal: a plain autoregressive row.
    kDrafter,  ///< The drafter, when it was asked.
    kCache,    ///< The speculation cache: a hit (SSD).
    kJit,      ///< The draft model after a cache miss, just in time.
  };
  Kind kind = Kind::kNone;
  DrafterId drafter{};

  friend constexpr bool operator==(const ProposalSource&, const ProposalSource&) = default;

  static const ProposalSource kNone, kCache, kJit;
  static const ProposalSource kDraft, kNgram, kRetrieval, kRandom;
  static constexpr ProposalSource Of(DrafterId drafter) { return {Kind::kDrafter, drafter}; }
};

inline constexpr ProposalSource ProposalSource::kNone{};
inline constexpr ProposalSource ProposalSource::kCache{Kind::kCache, DrafterId::kModel};
inline constexpr ProposalSource ProposalSource::kJit{Kind::kJit, DrafterId::kModel};
inline constexpr ProposalSource ProposalSource::kDraft = Of(DrafterId::kModel);
inline constexpr ProposalSource ProposalSource::kNgram = Of(DrafterId::kNgram);
inline constexpr ProposalSource ProposalSource::kRetrieval = Of(DrafterId::kRetrieval);
inline constexpr ProposalSource ProposalSource::kRandom = Of(DrafterId::kRandom);

std::string_view ProposalSourceName(ProposalSource source);

/// What proposes next when the speculation cache has no answer.
struct Fallback {
  enum class Kind : std::uint8_t {
    kNone,     ///< Nothing: one plain row.
    kJit,      ///< The draft model, just in time, unless that would hold other sequences.
    kDrafter,  ///< A drafter that answers at once.
    kAuto,     ///< By Theorem 17's rule on measured times.
  };
  Kind kind = Kind::kNone;
  DrafterId drafter{};

  friend constexpr auto operator<=>(const Fallback&, const Fallback&) = default;

  static const Fallback kNone, kJit, kAuto;
  static const Fallback kNgram;      ///< Prompt lookup.
  static const Fallback kRetrieval;  ///< What mode kSssd would propose.
  static const Fallback kRandom;     ///< Uniformly random tokens: the paper's baseline.
};

inline constexpr Fallback Fallback::kNone{};
inline constexpr Fallback Fallback::kJit{.kind = Kind::kJit};
inline constexpr Fallback Fallback::kAuto{.kind = Kind::kAuto};
inline constexpr Fallback Fallback::kNgram{Kind::kDrafter, DrafterId::kNgram};
inline constexpr Fallback Fallback::kRetrieval{Kind::kDrafter, DrafterId::kRetrieval};
inline constexpr Fallback Fallback::kRandom{Kind::kDrafter, DrafterId::kRandom};

/// Every fallback: jit, the drafters' in the registry's order, none, auto.
inline constexpr auto kFallbacks = [] {
  constexpr auto kOfDrafters = std::ranges::count(kDrafters, true, &DrafterInfo::fallback);
  std::array<Fallback, kOfDrafters + 3> fallbacks{};
  std::size_t count = 0;
  fallbacks[count++] = Fallback::kJit;
  for (const DrafterId id : kDrafterIds) {
    if (InfoOf(id).fallback) fallbacks[count++] = {Fallback::Kind::kDrafter, id};
  }
  fallbacks[count++] = Fallback::kNone;
  fallbacks[count] = Fallback::kAuto;
  return fallbacks;
}();

Result<Fallback> ParseFallback(std::string_view name);
std::string_view FallbackName(Fallback fallback);

}  // namespace foretoken
