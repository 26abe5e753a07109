#include "core/speculation/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/numbers/philox.h"

namespace foretoken {
namespace {

Proposal Chain(const std::vector<Token>& tokens) {
  Proposal proposal;
  for (const Token token : tokens) proposal.Extend(token);
  return proposal;
}

/// A random tree whose siblings carry distinct tokens below `vocabulary`.
Proposal RandomTree(std::mt19937& random, int size, int vocabulary) {
  Proposal proposal;
  std::set<std::pair<int, Token>> taken;
  while (proposal.size() < size) {
    const int parent = random() % (proposal.size() + 1);
    const auto token = static_cast<Token>(random() % vocabulary);
    if (!taken.emplace(parent, token).second) continue;
    proposal.parents.push_back(static_cast<std::int8_t>(parent));
    proposal.tokens.push_back(token);
  }
  return proposal;
}

std::vector<Token> TokensOnPath(const Proposal& proposal, int node) {
  std::vector<Token> tokens;
  for (const std::int8_t step : PathTo(proposal, node)) tokens.push_back(proposal.tokens[step - 1]);
  return tokens;
}

/// A target that is any function of what was emitted so far.
Token TargetToken(const std::vector<Token>& emitted, int vocabulary) {
  std::uint64_t state = 17;
  for (const Token token : emitted)
    state = (state + std::uint64_t(token) + 1) * 6364136223846793005;
  return static_cast<Token>((state >> 33) % vocabulary);
}

TEST(Verify, StoppingEarlyEmitsTheSame) {
  std::mt19937 random(3);
  int stopped = 0;
  for (int i = 0; i < 2000; ++i) {
    const Proposal proposal = RandomTree(random, 12, 3);
    const auto choose = [&](int node) { return TargetToken(TokensOnPath(proposal, node), 3); };
    const Outcome whole = VerifySharedNoise(proposal, choose);
    const int most = random() % 4;
    const Outcome early = VerifySharedNoise(
        proposal, choose, [&](int child) { return std::ssize(PathTo(proposal, child)) <= most; });
    std::vector<Token> expected = TokensOnPath(proposal, whole.node);
    expected.push_back(whole.bonus);
    std::vector<Token> tokens = TokensOnPath(proposal, early.node);
    tokens.push_back(early.bonus);
    stopped += tokens.size() < expected.size() ? 1 : 0;
    expected.resize(std::min<std::size_t>(expected.size(), most + 1));
    ASSERT_EQ(tokens, expected);
  }
  EXPECT_GT(stopped, 100);
}

TEST(Proposal, ChainsAndNames) {
  Proposal proposal;
  EXPECT_TRUE(proposal.IsChain());
  proposal.Extend(4);
  proposal.Extend(5);
  EXPECT_TRUE(proposal.IsChain());
  proposal.parents.push_back(0);
  proposal.tokens.push_back(6);
  EXPECT_FALSE(proposal.IsChain());
  proposal.Prune(63, 2);
  EXPECT_TRUE(proposal.IsChain());
  proposal.source = ProposalSource::kNgram;
  proposal.Clear();
  EXPECT_EQ(proposal.size(), 0);
  EXPECT_EQ(proposal.source, ProposalSource::kNone);

  std::set<std::string_view> names;
  for (const auto source : {ProposalSource::kNone, ProposalSource::kDraft, ProposalSource::kCache,
                            ProposalSource::kJit, ProposalSource::kNgram}) {
    names.insert(ProposalSourceName(source));
  }
  EXPECT_EQ(names.size(), 5U);
}

TEST(Proposal, PruningKeepsPathsWhole) {
  // 0 -> 1 (a=1) -> 3 (b=2); 0 -> 2 (b=2) -> 4 (a=1) -> 5 (a=1)
  Proposal tree;
  for (const auto& [token, parent] :
       std::vector<std::pair<Token, int>>{{1, 0}, {2, 0}, {2, 1}, {1, 2}, {1, 4}}) {
    tree.Append(parent, token);
  }
  EXPECT_EQ(tree.Depth(5), 3);
  EXPECT_EQ(tree.FirstChild(2), 4);
  EXPECT_EQ(tree.FirstChild(3), 0);
  EXPECT_EQ(tree.ChildWith(0, 2), 2);
  EXPECT_EQ(tree.ChildWith(1, 1), 0);
  Proposal level = tree;
  level.Prune(1, 63);
  EXPECT_EQ(level.size(), 2);
  Proposal few = tree;
  few.Prune(63, 4);
  EXPECT_EQ(PathTokens(few, 4).size(), 2U);
  // The middle goes: what stays is numbered anew.
  Proposal bent;
  bent.Append(0, 1);
  bent.Append(1, 2);
  bent.Append(2, 3);
  bent.Append(0, 4);
  bent.Append(4, 5);
  bent.Prune(2, 63);
  EXPECT_EQ(bent.size(), 4);
  const auto path = PathTokens(bent, 4);
  EXPECT_EQ(std::vector<Token>(path.begin(), path.end()), (std::vector<Token>{4, 5}));
}

TEST(Verify, ChainStopsAtTheFirstDifference) {
  const Proposal proposal = Chain({10, 11, 12});
  const auto verify = [&](const std::vector<Token>& target) {
    std::vector<int> asked;
    const Outcome outcome = VerifySharedNoise(proposal, [&](int node) {
      asked.push_back(node);
      return target[node];
    });
    for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i], int(i));
    EXPECT_EQ(asked.size(), std::size_t(outcome.node) + 1);
    return outcome;
  };
  EXPECT_EQ(verify({9, 11, 12, 13}), (Outcome{0, 9}));
  EXPECT_EQ(verify({10, 7, 12, 13}), (Outcome{1, 7}));
  EXPECT_EQ(verify({10, 11, 10, 13}), (Outcome{2, 10}));
  EXPECT_EQ(verify({10, 11, 12, 13}), (Outcome{3, 13}));
  EXPECT_EQ(VerifySharedNoise(Proposal{}, [](int) { return 5; }), (Outcome{0, 5}));
}

TEST(Verify, NodesOfATreeAreNumberedFromTheRoot) {
  // 0 -> 1 (a=1) -> 3 (b=2); 0 -> 2 (b=2) -> 4 (a=1) -> 5 (a=1)
  Proposal tree;
  for (const auto& [token, parent] :
       std::vector<std::pair<Token, int>>{{1, 0}, {2, 0}, {2, 1}, {1, 2}, {1, 4}}) {
    tree.tokens.push_back(token);
    tree.parents.push_back(static_cast<std::int8_t>(parent));
  }
  EXPECT_EQ(TokensOnPath(tree, 5), (std::vector<Token>{2, 1, 1}));
  EXPECT_TRUE(PathTo(tree, 0).empty());
  const std::vector<Token> target = {2, 9, 1, 9, 7, 9};
  EXPECT_EQ(VerifySharedNoise(tree, [&](int node) { return target[node]; }), (Outcome{4, 7}));
}

TEST(Verify, RandomTreesAgreeWithBruteForceAndEmitWhatTheTargetAloneEmits) {
  std::mt19937 random(5);
  int accepted = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const int vocabulary = 1 + static_cast<int>(random() % 4);
    const int most = vocabulary == 1 ? 10 : 20;
    Proposal tree = trial % 3 == 0 ? Chain(std::vector<Token>(random() % most, 0))
                                   : RandomTree(random, static_cast<int>(random() % most), 4);
    const std::vector<Token> emitted = {static_cast<Token>(random() % 1000)};
    const auto after = [&](int node) {
      std::vector<Token> tokens = emitted;
      const std::vector<Token> path = TokensOnPath(tree, node);
      tokens.insert(tokens.end(), path.begin(), path.end());
      return tokens;
    };
    const Outcome outcome =
        VerifySharedNoise(tree, [&](int node) { return TargetToken(after(node), vocabulary); });

    std::vector<Token> alone = emitted;
    std::vector<Token> round = after(outcome.node);
    round.push_back(outcome.bonus);
    while (alone.size() < round.size()) alone.push_back(TargetToken(alone, vocabulary));
    ASSERT_EQ(round, alone);

    // Brute force: the longest path of the tree that the target alone would emit.
    std::vector<Token> far = emitted;
    while (far.size() <= std::size_t(kMaxProposal) + 1) far.push_back(TargetToken(far, vocabulary));
    std::size_t deepest = 1;
    for (int node = 0; node <= tree.size(); ++node) {
      const std::vector<Token> path = after(node);
      if (std::equal(path.begin(), path.end(), far.begin())) {
        deepest = std::max(deepest, path.size());
      }
    }
    ASSERT_EQ(after(outcome.node).size(), deepest);
    accepted += outcome.node > 0;
  }
  EXPECT_GT(accepted, 500);
}

TEST(Verify, FullSizeChainAndStar) {
  const Proposal chain = Chain(std::vector<Token>(kMaxProposal, 3));
  EXPECT_EQ(VerifySharedNoise(chain, [](int) { return 3; }), (Outcome{kMaxProposal, 3}));
  EXPECT_EQ(PathTo(chain, kMaxProposal).size(), std::size_t(kMaxProposal));
  Proposal star;
  for (Token token = 0; token < kMaxProposal; ++token) {
    star.tokens.push_back(token);
    star.parents.push_back(0);
  }
  EXPECT_EQ(VerifySharedNoise(star, [](int node) { return node == 0 ? 62 : 8; }),
            (Outcome{kMaxProposal, 8}));
}

/// Exact: with shared Gumbel noise both choose i with probability 1 / sum_j max(p_j/p_i, q_j/q_i).
double CoupledAcceptance(const std::vector<double>& p, const std::vector<double>& q) {
  double acceptance = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < p.size(); ++j) sum += std::max(p[j] / p[i], q[j] / q[i]);
    acceptance += 1 / sum;
  }
  return acceptance;
}

Token NoisyArgmax(const std::vector<double>& p, std::uint64_t seed, std::uint64_t position) {
  Token best = 0;
  double best_score = -1e300;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double u = UnitInterval(
        PhiloxDraw(seed, position, static_cast<std::uint32_t>(i), NoisePurpose::kSampling));
    const double score = std::log(p[i]) - std::log(-std::log(u));
    if (score > best_score) {
      best_score = score;
      best = static_cast<Token>(i);
    }
  }
  return best;
}

TEST(Verify, SharedNoiseAcceptsAsOftenAsTheCouplingSays) {
  std::mt19937 random(9);
  std::exponential_distribution<double> exponential;
  constexpr int kDraws = 40'000;
  for (std::uint64_t pair = 0; pair < 6; ++pair) {
    std::vector<double> p(12);
    std::vector<double> q(12);
    double p_sum = 0;
    double q_sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      p_sum += p[i] = exponential(random);
      q_sum += q[i] = p[i] + double(pair) * 0.3 * exponential(random);
    }
    double tv = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] /= p_sum;
      q[i] /= q_sum;
      tv += 0.5 * std::abs(p[i] - q[i]);
    }
    const double a = CoupledAcceptance(p, q);
    EXPECT_GE(a, (1 - tv) / (1 + tv) - 1e-12);
    EXPECT_LE(a, 1 - tv + 1e-12);

    int accepted = 0;
    std::map<Token, int> emitted;
    for (int position = 0; position < kDraws; ++position) {
      const Proposal proposal = Chain({NoisyArgmax(q, pair, position)});
      Token first = -1;
      const Outcome outcome = VerifySharedNoise(proposal, [&](int node) {
        const Token token = NoisyArgmax(p, pair, position + node);
        if (node == 0) first = token;
        return token;
      });
      accepted += outcome.node;
      ++emitted[first];
    }
    const double sigma = std::sqrt(std::max(a * (1 - a), 1e-9) / kDraws);
    EXPECT_NEAR(double(accepted) / kDraws, a, 4 * sigma) << "pair " << pair << ", TV " << tv;
    for (std::size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(double(emitted[Token(i)]) / kDraws, p[i],
                  4.5 * std::sqrt(p[i] * (1 - p[i]) / kDraws));
    }
  }
}

}  // namespace
}  // namespace foretoken
