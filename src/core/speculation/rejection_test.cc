// The distribution of what rejection verification emits, added up exactly over all draws, against
// the distribution of plain decoding; and the same for every mistake that notes on other
// implementations warn of, which must show.

#include "core/speculation/rejection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "core/speculation/enumerator_testing.h"
#include "core/speculation/verify.h"

namespace foretoken {
namespace {

using Distribution = std::vector<double>;
using Tokens = std::vector<Token>;
using Joint = std::map<Tokens, double>;

constexpr int kVocabulary = 4;
constexpr int kEmitted = 3;  // Tokens whose joint distribution is compared.

/// What goes wrong in other implementations.
enum class Mistake {
  kNone,
  kDistributionBeforeSaguaro,      // Ratio and residual use q before the transform.
  kDistributionBeforeFilter,       // Ratio and residual use q before top-p.
  kDraftDistributionForPointMass,  // The draft's q for a token that was not drawn from it.
  kArgmaxAcceptance,               // A token is accepted where it is the target's likeliest.
  kBonusFromTarget,                // After a rejection p is sampled, not the residual.
  kResidualAtTheEnd,               // After full acceptance the residual is sampled, not p.
  kSiblingsAgainstTarget,          // The second child is tested against p, not what the first left.
  kResidualNotRenormalised,  // The second child is tested against p - q without renormalising.
  kSiblingsWithReplacement,  // q of the second child forgets that the first is excluded.
  kDropsUnlikelyDraws,       // Whether a token is proposed depends on which one was drawn.
};

enum class Source { kDrawn, kArgmax, kUniform };

struct Setting {
  Source source = Source::kDrawn;
  int lookahead = 2;
  int width = 1;
  int fanout = 0;
  double saguaro_c = 1;
  bool top_p = false;  // Both distributions lose their least likely tokens.
  int listed = kVocabulary;
  Mistake mistake = Mistake::kNone;
  bool stops = false;  // No node with an odd token is entered.
};

Distribution Normalised(Distribution distribution) {
  const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  for (double& probability : distribution) probability /= sum;
  return distribution;
}

/// Any distribution that depends on all tokens before.
Distribution RawDistribution(const Tokens& prefix, unsigned salt) {
  for (const Token token : prefix) salt = salt * 8 + static_cast<unsigned>(token) + 1;
  std::minstd_rand random(salt * 2654435761U);
  random.discard(3);
  Distribution distribution(kVocabulary);
  for (double& probability : distribution) probability = 0.05 + double(random() % 1000) / 1000;
  return Normalised(distribution);
}

Distribution WithoutTail(Distribution distribution) {
  for (double& probability : distribution) probability = probability < 0.2 ? 0 : probability;
  return Normalised(distribution);
}

Distribution TargetDistribution(const Setting& setting, const Tokens& prefix) {
  const Distribution distribution = RawDistribution(prefix, 1);
  return setting.top_p ? WithoutTail(distribution) : distribution;
}

std::vector<TokenProbability> ListedTokens(const Distribution& distribution) {
  std::vector<TokenProbability> listed;
  for (Token token = 0; token < kVocabulary; ++token) {
    if (distribution[token] > 0) listed.push_back({token, static_cast<float>(distribution[token])});
  }
  std::stable_sort(listed.begin(), listed.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  return listed;
}

/// The draft's distribution before filters and Saguaro, and after.
std::vector<TokenProbability> RawDraftDistribution(const Tokens& prefix) {
  return ListedTokens(Normalised([&] {
    Distribution distribution = RawDistribution(prefix, 2);
    const Distribution target = RawDistribution(prefix, 1);
    for (int i = 0; i < kVocabulary; ++i) distribution[i] += target[i];
    return distribution;
  }()));
}
std::vector<TokenProbability> FilteredDraftDistribution(const Setting& setting,
                                                        const Tokens& prefix) {
  Distribution distribution(kVocabulary, 0.0);
  for (const auto& entry : RawDraftDistribution(prefix)) {
    distribution[entry.token] = entry.probability;
  }
  auto listed = ListedTokens(setting.top_p ? WithoutTail(distribution) : distribution);
  listed.resize(std::min<std::size_t>(listed.size(), setting.listed));
  return listed;
}

/// The tree that a drafter proposes after `prefix`, and the distributions it says it drew from.
void Propose(const Setting& setting, const Tokens& prefix, Enumerator* random, Proposal* proposal,
             DraftDistributions* distributions) {
  proposal->Clear();
  distributions->Clear();
  std::vector<std::pair<int, Tokens>> level = {{0, {}}};  // Nodes and their paths.
  for (int depth = 0; depth < setting.lookahead; ++depth) {
    std::vector<std::pair<int, Tokens>> next;
    for (const auto& [node, path] : level) {
      Tokens tokens = prefix;
      tokens.insert(tokens.end(), path.begin(), path.end());
      auto distribution = FilteredDraftDistribution(setting, tokens);
      const auto before = distribution;
      ApplySaguaro(distribution, setting.fanout, setting.saguaro_c);
      if (setting.mistake == Mistake::kDistributionBeforeSaguaro) {
        distributions->SetListed(node, before);
      } else if (setting.mistake == Mistake::kDistributionBeforeFilter) {
        distributions->SetListed(node, RawDraftDistribution(tokens));
      } else if (setting.source == Source::kDrawn ||
                 setting.mistake == Mistake::kDraftDistributionForPointMass) {
        distributions->SetListed(node, distribution);
      } else if (setting.source == Source::kUniform) {
        distributions->SetUniform(node);
      }
      Distribution weights(kVocabulary, setting.source == Source::kUniform ? 1.0 : 0.0);
      if (setting.source == Source::kDrawn) {
        for (const auto& entry : distribution) weights[entry.token] = entry.probability;
      }
      for (int i = 0; i < setting.width && i < int(before.size()); ++i) {
        Token token = before[i].token;
        if (setting.source != Source::kArgmax) {
          if (std::accumulate(weights.begin(), weights.end(), 0.0) == 0) break;
          token = random->Pick(weights);
          weights[token] = 0;
        }
        if (setting.mistake == Mistake::kDropsUnlikelyDraws && token == before.back().token) break;
        proposal->tokens.push_back(token);
        proposal->parents.push_back(static_cast<std::int8_t>(node));
        Tokens longer = path;
        longer.push_back(token);
        next.emplace_back(proposal->size(), longer);
      }
    }
    level = std::move(next);
  }
}

Distribution Subtract(const Distribution& p, const Distribution& q) {
  Distribution rest(kVocabulary);
  for (int i = 0; i < kVocabulary; ++i) rest[i] = std::max(p[i] - q[i], 0.0);
  return rest;
}

Distribution Dense(const DraftDistribution& q, Token token, const Tokens& earlier) {
  Distribution distribution(kVocabulary, q.kind == DraftDistribution::Kind::kUniform ? 1.0 : 0.0);
  for (const auto& entry : q.listed) distribution[entry.token] = entry.probability;
  if (q.kind == DraftDistribution::Kind::kPoint) distribution[token] = 1;
  for (const Token other : earlier) distribution[other] = 0;
  return Normalised(distribution);
}

/// Verification in plain words, on dense distributions, with room for mistakes.
Outcome PlainVerify(const Proposal& proposal, const DraftDistributions& distributions,
                    Mistake mistake, const std::function<Distribution(int)>& distribution_of,
                    Enumerator* random) {
  int node = 0;
  for (;;) {
    Distribution p = distribution_of(node);
    const Distribution target = p;
    Tokens rejected;
    int accepted = 0;
    for (int i = 0; i < proposal.size() && accepted == 0; ++i) {
      if (proposal.parents[i] != node) continue;
      const Token token = proposal.tokens[i];
      const bool replacement = mistake == Mistake::kSiblingsWithReplacement;
      const Distribution q =
          Dense(distributions.at(node), token, replacement ? Tokens() : rejected);
      double ratio = p[token] / q[token];
      if (mistake == Mistake::kArgmaxAcceptance) {
        ratio = token == std::max_element(target.begin(), target.end()) - target.begin();
      }
      if (Enumerator::Uniform{random} < ratio) {
        accepted = i + 1;
        break;
      }
      rejected.push_back(token);
      if (mistake == Mistake::kSiblingsAgainstTarget) continue;
      const Distribution rest = Subtract(p, q);
      if (std::accumulate(rest.begin(), rest.end(), 0.0) < 1e-9) break;
      p = mistake == Mistake::kResidualNotRenormalised ? rest : Normalised(rest);
    }
    if (accepted != 0) {
      node = accepted;
      continue;
    }
    if (mistake == Mistake::kBonusFromTarget) p = target;
    if (mistake == Mistake::kResidualAtTheEnd && rejected.empty() && proposal.size() > 0) {
      const Distribution rest = Subtract(p, Dense(distributions.at(0), 0, {}));
      if (std::accumulate(rest.begin(), rest.end(), 0.0) > 1e-9) p = Normalised(rest);
    }
    if (mistake == Mistake::kSiblingsAgainstTarget) {
      for (const Token token : rejected) p[token] = 0;
    }
    return {node, random->Pick(p)};
  }
}

/// One round after `emitted`, by the real verification or in plain words; returns what it emits.
Tokens EmitRound(const Setting& setting, bool plain, const Tokens& emitted, Enumerator* random) {
  Proposal proposal;
  DraftDistributions distributions;
  Propose(setting, emitted, random, &proposal, &distributions);
  const auto distribution_of = [&](int node) {
    Tokens tokens = emitted;
    for (const auto step : PathTo(proposal, node)) tokens.push_back(proposal.tokens[step - 1]);
    return TargetDistribution(setting, tokens);
  };
  std::vector<float> p;
  const auto float_distribution_of = [&](int node) {
    const Distribution distribution = distribution_of(node);
    p.assign(distribution.begin(), distribution.end());
    return std::span(p);
  };
  const auto uniform = [&](int, int) { return Enumerator::Uniform{random}; };
  const auto bonus = [&](int node, std::span<float> left) {
    return Token{random->Pick(left.empty() ? distribution_of(node)
                                           : Distribution(left.begin(), left.end()))};
  };
  const auto may_enter = [&](int, int child) {
    return !setting.stops || proposal.tokens[child - 1] % 2 == 0;
  };
  const Outcome outcome =
      plain ? PlainVerify(proposal, distributions, setting.mistake, distribution_of, random)
            : VerifyRejection(proposal, distributions, float_distribution_of, uniform, bonus,
                              may_enter);
  Tokens tokens = emitted;
  for (const auto step : PathTo(proposal, outcome.node)) {
    tokens.push_back(proposal.tokens[step - 1]);
  }
  tokens.push_back(outcome.bonus);
  return tokens;
}

/// The exact joint distribution of the first tokens that rounds of proposing and verifying emit.
Joint EmittedDistribution(const Setting& setting, bool plain) {
  std::vector<Joint> by_length(kEmitted + 1);  // Not yet continued, then the result.
  by_length[0][{}] = 1;
  for (int length = 0; length < kEmitted; ++length) {
    for (const auto& [emitted, reached] : by_length[length]) {
      Enumerator random;
      Tokens next;
      random.Run([&] { next = EmitRound(setting, plain, emitted, &random); },
                 [&](double probability) {
                   next.resize(std::min<std::size_t>(next.size(), kEmitted));
                   by_length[next.size()][next] += reached * probability;
                 });
    }
  }
  return by_length[kEmitted];
}

/// The largest distance to what the target alone would emit, over all sequences.
double JointError(const Setting& setting, const Joint& joint) {
  double total = 0;
  double error = 0;
  for (const auto& [tokens, probability] : joint) {
    double expected = 1;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      expected *=
          TargetDistribution(setting, Tokens(tokens.begin(), tokens.begin() + i))[tokens[i]];
    }
    total += expected;
    error = std::max(error, std::abs(probability - expected));
  }
  return std::max(error, 1 - total);  // What was never emitted counts as well.
}

const std::vector<std::pair<std::string, Setting>>& Settings() {
  static const std::vector<std::pair<std::string, Setting>> settings = {
      {"chain", {}},
      {"long chain", {.lookahead = 3}},
      {"tree", {.width = 2}},
      {"wide tree", {.lookahead = 1, .width = 4}},
      {"no proposal", {.lookahead = 0}},
      {"stopping behind some tokens", {.lookahead = 3, .stops = true}},
      {"stopping in a tree", {.width = 2, .stops = true}},
      {"Saguaro", {.fanout = 1, .saguaro_c = 0.3}},
      {"Saguaro at C = 0", {.fanout = 2, .saguaro_c = 0}},
      {"Saguaro of everything", {.fanout = 4, .saguaro_c = 0}},
      {"Saguaro tree", {.width = 2, .fanout = 2, .saguaro_c = 0.3}},
      {"top-p", {.top_p = true}},
      {"top-p tree with Saguaro", {.width = 2, .fanout = 1, .saguaro_c = 0.5, .top_p = true}},
      {"truncated distribution", {.listed = 2}},
      {"truncated tree", {.width = 2, .listed = 3}},
      {"point masses", {.source = Source::kArgmax}},
      {"tree of point masses", {.source = Source::kArgmax, .width = 3}},
      {"point masses under top-p", {.source = Source::kArgmax, .width = 2, .top_p = true}},
      {"uniform", {.source = Source::kUniform}},
      {"uniform tree", {.source = Source::kUniform, .lookahead = 1, .width = 3, .top_p = true}},
  };
  return settings;
}

TEST(Rejection, EmitsExactlyTheTargetsDistribution) {
  for (const auto& [name, setting] : Settings()) {
    EXPECT_LT(JointError(setting, EmittedDistribution(setting, /*plain=*/false)), 2e-6) << name;
  }
}

TEST(Rejection, AgreesWithThePlainWords) {
  for (const auto& [name, setting] : Settings()) {
    if (setting.width == 2 && setting.source == Source::kDrawn) continue;  // Slow, and like others.
    const Joint joint = EmittedDistribution(setting, /*plain=*/true);
    EXPECT_LT(JointError(setting, joint), 2e-6) << name;
  }
}

TEST(Rejection, EveryKnownMistakeShows) {
  const Setting saguaro = {.fanout = 1, .saguaro_c = 0.3};
  const Setting tree = {.lookahead = 1, .width = 2};
  const Setting point = {.source = Source::kArgmax};
  const std::vector<std::tuple<std::string, Setting, Mistake>> mutants = {
      {"q before Saguaro", saguaro, Mistake::kDistributionBeforeSaguaro},
      {"q before top-p", {.top_p = true}, Mistake::kDistributionBeforeFilter},
      {"q of a point mass", point, Mistake::kDraftDistributionForPointMass},
      {"argmax acceptance of n-grams", point, Mistake::kArgmaxAcceptance},
      {"argmax acceptance of draws", {}, Mistake::kArgmaxAcceptance},
      {"argmax acceptance of random tokens",
       {.source = Source::kUniform},
       Mistake::kArgmaxAcceptance},
      {"bonus from p", {}, Mistake::kBonusFromTarget},
      {"bonus from p after a point mass", point, Mistake::kBonusFromTarget},
      {"residual at k = K", {}, Mistake::kResidualAtTheEnd},
      {"siblings against p", tree, Mistake::kSiblingsAgainstTarget},
      {"residual not renormalised",
       {.lookahead = 1, .width = 2, .fanout = 1, .saguaro_c = 0.1},
       Mistake::kResidualNotRenormalised},
      {"siblings drawn as if with replacement", tree, Mistake::kSiblingsWithReplacement},
      {"unlikely draws dropped", {}, Mistake::kDropsUnlikelyDraws},
  };
  for (auto [name, setting, mistake] : mutants) {
    setting.mistake = mistake;
    // A thousandth in one of 64 cells: 500,000 draws would show it at 10 standard deviations.
    EXPECT_GT(JointError(setting, EmittedDistribution(setting, /*plain=*/true)), 1e-3) << name;
  }
}

TEST(Rejection, GreedyTargetTakesWhatItWouldEmit) {
  // T -> 0: both distributions are point masses; acceptance is equality, and no variable matters.
  std::vector<float> p = {0, 0, 1, 0};
  for (const Token proposed : {2, 1}) {
    Proposal proposal;
    proposal.Extend(proposed);
    const Outcome outcome = VerifyRejection(
        proposal, DraftDistributions(),
        [&](int) {
          p = {0, 0, 1, 0};
          return std::span(p);
        },
        [&](int, int) { return proposed == 2 ? 1 - 1e-9 : 1e-9; },
        [&](int, std::span<float> weights) {
          if (!weights.empty()) {
            EXPECT_EQ(weights[1], 0);
            EXPECT_EQ(weights[2], 1);
          }
          return Token{2};
        });
    EXPECT_EQ(outcome.node, proposed == 2 ? 1 : 0);
  }
}

TEST(Rejection, NothingLeftStandsForTheTargetItself) {
  // Where p = q a rejection can come only from rounding; then p is what to draw from.
  std::vector<float> p = {0.5, 0.5, 0, 0};
  DraftDistributions distributions;
  distributions.SetListed(0, std::vector<TokenProbability>{{0, 0.5F}, {1, 0.5F}});
  Proposal proposal;
  proposal.Extend(0);
  const Outcome outcome = VerifyRejection(
      proposal, distributions, [&](int) { return std::span(p); }, [](int, int) { return 1.5; },
      [](int, std::span<float> weights) {
        EXPECT_TRUE(weights.empty());
        return Token{1};
      });
  EXPECT_EQ(outcome, (Outcome{0, 1}));
}

/// Theorem 19 (A.3.1), Construction 1: acceptance and hit rate of the cache {top F other than the
/// rejected token}, with the distribution that is really drawn from.
std::pair<double, double> AcceptanceAndHits(double C) {  // NOLINT: the paper's symbol.
  constexpr int kFanout = 2;
  const std::vector<float> target = {0.48F, 0.48F, 0.02F, 0.02F};
  const std::vector<TokenProbability> draft = {{0, 0.49F}, {1, 0.49F}, {2, 0.01F}, {3, 0.01F}};
  double accepted = 0;
  double rejected = 0;
  double hits = 0;
  Enumerator random;
  Outcome outcome;
  bool hit = false;
  random.Run(
      [&] {
        auto distribution = draft;
        ApplySaguaro(distribution, kFanout, C);
        Proposal proposal;
        DraftDistributions distributions;
        distributions.SetListed(0, distribution);
        Distribution weights;
        for (const auto& entry : distribution) weights.push_back(entry.probability);
        proposal.Extend(random.Pick(weights));
        std::vector<float> p = target;
        outcome = VerifyRejection(
            proposal, distributions, [&](int) { return std::span(p); },
            [&](int, int) { return Enumerator::Uniform{&random}; },
            [&](int, std::span<float> left) {
              if (left.empty()) return Token{0};
              return random.Pick(Distribution(left.begin(), left.end()));
            });
        int cached = 0;
        hit = false;
        for (const auto& entry : draft) {
          if (entry.token == proposal.tokens[0] || cached++ == kFanout) continue;
          hit = hit || entry.token == outcome.bonus;
          if (cached == kFanout) break;
        }
      },
      [&](double probability) {
        (outcome.node == 1 ? accepted : rejected) += probability;
        if (outcome.node == 0 && hit) hits += probability;
      });
  return {accepted, hits / rejected};
}

TEST(Rejection, ConstructionOneGainsHitsAtEqualAcceptance) {
  const auto [acceptance, hits] = AcceptanceAndHits(1);
  EXPECT_NEAR(acceptance, 0.98, 1e-6);
  EXPECT_NEAR(hits, 0.5, 1e-5);
  const auto [saguaro_acceptance, saguaro_hits] = AcceptanceAndHits(47.0 / 147);
  EXPECT_NEAR(saguaro_acceptance, 0.98, 1e-6);
  EXPECT_NEAR(saguaro_hits, 1.0, 1e-5);
}

}  // namespace
}  // namespace foretoken
