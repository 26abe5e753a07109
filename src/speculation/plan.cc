#include "speculation/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, Mode>, kModes> kModeNames = {{
    {"ar", Mode::kAr},
    {"sd", Mode::kSd},
    {"ssd", Mode::kSsd},
    {"ngram", Mode::kNgram},
    {"sssd", Mode::kSssd},
    {"rest", Mode::kRest},
    {"trie", Mode::kTrie},
    {"auto", Mode::kAuto},
}};

constexpr std::array<std::pair<std::string_view, Fallback>, 6> kFallbackNames = {{
    {"jit", Fallback::kJit},
    {"ngram", Fallback::kNgram},
    {"retrieval", Fallback::kRetrieval},
    {"random", Fallback::kRandom},
    {"none", Fallback::kNone},
    {"auto", Fallback::kAuto},
}};

constexpr std::array<std::pair<std::string_view, Verification>, 2> kVerificationNames = {{
    {"shared-noise", Verification::kSharedNoise},
    {"rejection", Verification::kRejection},
}};

constexpr std::array<std::pair<std::string_view, CacheOrder>, 2> kCacheOrderNames = {{
    {"noise", CacheOrder::kNoise},
    {"probability", CacheOrder::kProbability},
}};

template <typename Names>
auto Parse(const Names& names, std::string_view what, std::string_view name)
    -> Result<typename Names::value_type::second_type> {
  std::string known;
  for (const auto& [known_name, value] : names) {
    if (name == known_name) return value;
    known += known.empty() ? "" : ", ";
    known += known_name;
  }
  return InvalidInput(fmt::format("'{}' is not a {}: choose one of {}", name, what, known));
}

template <typename Names, typename Value>
std::string_view NameOf(const Names& names, Value value) {
  for (const auto& [name, known] : names) {
    if (known == value) return name;
  }
  FT_CHECK(false, "a value without a name: {}", static_cast<int>(value));
}

}  // namespace

Result<Mode> ParseMode(std::string_view name) { return Parse(kModeNames, "mode", name); }
std::string_view ModeName(Mode mode) { return NameOf(kModeNames, mode); }

Result<Fallback> ParseFallback(std::string_view name) {
  return Parse(kFallbackNames, "fallback", name);
}
std::string_view FallbackName(Fallback fallback) { return NameOf(kFallbackNames, fallback); }

Result<Verification> ParseVerification(std::string_view name) {
  return Parse(kVerificationNames, "way to verify", name);
}
std::string_view VerificationName(Verification verification) {
  return NameOf(kVerificationNames, verification);
}

Result<CacheOrder> ParseCacheOrder(std::string_view name) {
  return Parse(kCacheOrderNames, "cache order", name);
}

int FanoutAt(const FanoutShape& shape, const Proposal& proposal, int node) {
  const int K = static_cast<int>(shape.at.size()) - 1;
  const int length = proposal.IsChain() ? std::min(proposal.size(), K) : K;
  const bool leaf = proposal.FirstChild(node) == 0;
  return shape.At(leaf ? length : std::min(proposal.Depth(node), K), length);
}

FanoutShape UniformFanout(int fanout, int lookahead) {
  FT_CHECK(fanout >= 0 && fanout <= kMaxFanout, "fan-out {}", fanout);
  FT_CHECK(lookahead >= 0 && lookahead <= kMaxProposal, "lookahead {}", lookahead);
  FanoutShape shape;
  for (int k = 0; k <= lookahead; ++k) shape.at.push_back(static_cast<std::uint8_t>(fanout));
  return shape;
}

FanoutShape EvenFanout(int budget, int lookahead) {
  FT_CHECK(budget >= 0, "cache budget {}", budget);
  const int nodes = lookahead + 1;
  FanoutShape shape = UniformFanout(std::min(budget / nodes, kMaxFanout), lookahead);
  for (int k = 0; k < budget % nodes && shape.at[k] < kMaxFanout; ++k) ++shape.at[k];
  shape.spends_budget = true;
  return shape;
}

}  // namespace foretoken
