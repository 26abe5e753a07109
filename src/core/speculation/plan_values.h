#pragma once

// How users write the values of PlanOptions that have names.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/speculation/presets.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// Rules that share a cache budget out; kGiven has numbers in place of a name.
inline constexpr std::array kFanoutRules = {FanoutRule::kUniform, FanoutRule::kGeometric,
                                            FanoutRule::kPlanned};
inline constexpr std::array kCacheOrders = {CacheOrder::kNoise, CacheOrder::kProbability};

inline std::span<const Mode> ValuesOf(const PlanField<Mode>&) { return kModes; }
inline std::span<const Fallback> ValuesOf(const PlanField<Fallback>&) { return kFallbacks; }
inline std::span<const SsdPreset> ValuesOf(const PlanField<SsdPreset>&) { return kSsdPresets; }
inline std::span<const CacheOrder> ValuesOf(const PlanField<CacheOrder>&) { return kCacheOrders; }

inline std::string_view NameOf(Mode value) { return ModeName(value); }
inline std::string_view NameOf(Fallback value) { return FallbackName(value); }
inline std::string_view NameOf(SsdPreset value) { return SsdPresetName(value); }
inline std::string_view NameOf(CacheOrder value) { return CacheOrderName(value); }
std::string_view NameOf(FanoutRule rule);

inline Result<Mode> ParseValue(const PlanField<Mode>&, std::string_view name) {
  return ParseMode(name);
}
inline Result<Fallback> ParseValue(const PlanField<Fallback>&, std::string_view name) {
  return ParseFallback(name);
}
inline Result<SsdPreset> ParseValue(const PlanField<SsdPreset>&, std::string_view name) {
  return ParseSsdPreset(name);
}
inline Result<CacheOrder> ParseValue(const PlanField<CacheOrder>&, std::string_view name) {
  return ParseCacheOrder(name);
}

/// The names of -1, -2 and so on of a number's field; none where it has none.
std::vector<std::string_view> WordsOf(const PlanField<int>& field);

}  // namespace foretoken
