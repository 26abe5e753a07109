#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "core/speculation/plan_values.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

// The one of `values` that `name_of` calls so.
template <typename Values, typename NameOf>
auto Parse(const Values& values, NameOf name_of, std::string_view what, std::string_view name)
    -> Result<typename Values::value_type> {
  std::string known;
  for (const auto& value : values) {
    if (name == name_of(value)) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name_of(value));
  }
  return Invalid("'{}' is not {}: choose one of {}", name, what, known);
}

// The name of an enumerator, by its place.
template <typename Names, typename Value>
std::string_view NameAt(const Names& names, Value value) {
  const auto place = static_cast<std::size_t>(value);
  FT_CHECK(place < names.size(), "a value without a name: {}", place);
  return names[place];
}

constexpr std::array kVerifications = {Verification::kSharedNoise, Verification::kRejection};
constexpr std::array kLossyRules = {Lossy::kNone, Lossy::kTypical, Lossy::kTopKRelaxed,
                                    Lossy::kJudge};

}  // namespace

std::vector<std::string_view> WordsOf(const PlanField<int>& field) {
  std::vector<std::string_view> words;
  for (std::string_view rest = field.words; !rest.empty();) {
    words.push_back(rest.substr(0, rest.find('|')));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  return words;
}

Result<Mode> ParseMode(std::string_view name) {
  for (const DrafterId draft : kDraftModels) {
    const DrafterInfo& info = InfoOf(draft);
    if (!info.during.empty() || name != fmt::format("s{}", info.before)) continue;
    return Invalid(
        "'{}' is not a mode: only the first draft drafts while the target verifies, in mode {}; "
        "this one drafts before that, in mode {}",
        name, ModeName(Mode::kSsd), info.before);
  }
  return Parse(kModes, ModeName, "a mode", name);
}

std::string_view ModeName(Mode mode) {
  if (mode.planned()) return "auto";
  if (!mode.drafts()) return "ar";
  const DrafterInfo& info = InfoOf(mode.drafter);
  const std::string_view name = mode.before() ? info.before : info.during;
  return name.empty() ? "?" : name;
}

std::string_view ProposalSourceName(ProposalSource source) {
  if (source.kind == ProposalSource::Kind::kDrafter) return InfoOf(source.drafter).name;
  constexpr std::array<std::string_view, 4> kNames = {"none", "", "cache", "jit"};
  return NameAt(kNames, source.kind);
}

Result<Fallback> ParseFallback(std::string_view name) {
  return Parse(kFallbacks, FallbackName, "a fallback", name);
}

std::string_view FallbackName(Fallback fallback) {
  if (fallback.kind == Fallback::Kind::kDrafter) return InfoOf(fallback.drafter).name;
  constexpr std::array<std::string_view, 4> kNames = {"none", "jit", "", "auto"};
  return NameAt(kNames, fallback.kind);
}

Result<Verification> ParseVerification(std::string_view name) {
  return Parse(kVerifications, VerificationName, "a way to verify", name);
}

std::string_view VerificationName(Verification verification) {
  constexpr std::array<std::string_view, 2> kNames = {"shared-noise", "rejection"};
  return NameAt(kNames, verification);
}

Result<Lossy> ParseLossy(std::string_view name) {
  return Parse(kLossyRules, LossyName, "a lossy way to verify", name);
}

std::string_view LossyName(Lossy lossy) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "typical", "top-k-relaxed", "judge"};
  return NameAt(kNames, lossy);
}

std::string_view NameOf(FanoutRule rule) {
  constexpr std::array<std::string_view, 4> kNames = {"", "uniform", "geometric", "planned"};
  return NameAt(kNames, rule);
}

std::string_view CacheOrderName(CacheOrder order) {
  constexpr std::array<std::string_view, kCacheOrders.size()> kNames = {"noise", "probability"};
  return NameAt(kNames, order);
}

Result<CacheOrder> ParseCacheOrder(std::string_view name) {
  return Parse(kCacheOrders, CacheOrderName, "a cache order", name);
}

Result<SsdPreset> ParseSsdPreset(std::string_view name) {
  return Parse(kSsdPresets, SsdPresetName, "an SSD preset", name);
}

std::string_view SsdPresetName(SsdPreset preset) {
  constexpr std::array<std::string_view, kSsdPresets.size()> kNames = {
      "saguaro", "pearl", "amusd", "specbranch", "swiftspec", "mirror-sd", "dsi"};
  return NameAt(kNames, preset);
}

}  // namespace foretoken
