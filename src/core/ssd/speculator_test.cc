// Both sides of the protocol in one thread, over a draft of random weights.

#include "core/ssd/speculator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/numbers/integers.h"
#include "core/backend/testing/reference_backend.h"
#include "core/model/model_weights.h"
#include "core/ssd/channel_testing.h"

namespace foretoken {
namespace {

constexpr int kLookahead = 3;
constexpr int kFanout = 2;

std::unique_ptr<Model> TinyModel(Backend* backend) {
  const auto weights = SyntheticWeights(LlamaConfig({.hidden = 16,
                                                     .intermediate = 32,
                                                     .layers = 2,
                                                     .heads = 2,
                                                     .kv_heads = 1,
                                                     .head_dim = 8,
                                                     .vocabulary = 48,
                                                     .max_positions = 256}),
                                        7, backend);
  return weights->MakeModel(backend);
}

// The tokens from below the root to a node. In which order a tree grows depends on how long passes
// take, so nodes are told by their paths.
using Path = std::vector<Token>;

Path PathOf(const Proposal& tree, int node) {
  const auto tokens = PathTokens(tree, node);
  return {tokens.begin(), tokens.end()};
}

std::set<Path> PathsOf(const Proposal& tree) {
  std::set<Path> paths;
  for (int node = 1; node <= tree.size(); ++node) paths.insert(PathOf(tree, node));
  return paths;
}

// A speculator and its client; nothing happens between calls.
class Both {
 public:
  explicit Both(int width, std::size_t prompt = 4) : tokens_(prompt, 9) {
    std::ranges::copy(std::array<Token, 3>{3, 14, 15}, tokens_.begin());
    plan_.tree_width = width;
    plan_.max_nodes = 7;
    client_.emplace(std::make_unique<TestHost>(&pair_),
                    ConfigureMessage{.max_lookahead = kLookahead,
                                     .max_nodes = plan_.nodes(),
                                     .max_cache_budget = 40,
                                     .max_sequences = 2,
                                     .max_context = 200,
                                     .vocabulary = 48},
                    [](const std::string& warning) { ADD_FAILURE() << warning; });
    SendMessage(HelloMessage{}, &pair_.speculator);  // As one that has started already.
    client_->Poll();
    client_->Open({.sequence = 1,
                   .tokens = tokens_,
                   .prompt_tokens = Int(tokens_.size()),
                   .sampling = &sampling_,
                   .plan = &plan_,
                   .stop_tokens = {}});
  }

  // Lets the speculator work until it has nothing to do.
  void Work() {
    pair_.speculator.waited = false;
    const Status status = speculator_.Run(
        [](void* end) { return static_cast<QueueChannel*>(end)->waited; }, &pair_.speculator);
    EXPECT_TRUE(status.ok());
    client_->Poll();
  }

  std::map<Path, CacheAnswer> Prepared() {
    std::map<Path, CacheAnswer> prepared;
    std::vector<Token> bonuses;
    for (int node = 0; node <= verified_.size(); ++node) {
      client_->PreparedAt(1, node, &bonuses);
      for (const Token bonus : bonuses) {
        Path path = PathOf(verified_, node);
        path.push_back(bonus);
        prepared[path] = client_->Lookup(1, {node, bonus});
      }
    }
    return prepared;
  }

  // The target said `path` and verifies `next`.
  void Send(const Path& path, Outcome outcome, const Proposal& next) {
    client_->SendOutcome(1, outcome, path, next, plan_, /*wants_jit=*/false);
    verified_ = next;
  }

  // The target said `token` after the root of what it verified, and waits for a proposal.
  Proposal JustInTime(Token token) {
    client_->SendOutcome(1, {.node = 0, .bonus = token}, Path{token}, {}, plan_,
                         /*wants_jit=*/true);
    Work();
    Proposal proposal;
    EXPECT_TRUE(client_->TakeProposal(1, &proposal));
    return proposal;
  }

  ChannelPair pair_;

 private:
  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  std::unique_ptr<Model> model_ = TinyModel(backend_.get());
  Speculator speculator_{model_.get(), &pair_.speculator, nullptr};
  std::optional<SpeculatorClient> client_;
  std::vector<Token> tokens_;
  SamplingParams sampling_{.temperature = 1, .seed = 5};
  SpeculationPlan plan_{.mode = Mode::kSsd,
                        .lookahead = kLookahead,
                        .primary = UniformFanout(kFanout, kLookahead),
                        .after_fallback = UniformFanout(kFanout, kLookahead)};
  Proposal verified_;
};

void ExpectSameAnswers(const std::map<Path, CacheAnswer>& a, const std::map<Path, CacheAnswer>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [path, answer] : a) {
    ASSERT_TRUE(b.contains(path));
    EXPECT_EQ(PathsOf(answer.proposal), PathsOf(b.at(path).proposal));
  }
}

class ProtocolTest : public testing::TestWithParam<int> {};

// A hit that is told by the branch and its nodes must leave the speculator where the same proposal
// told in full does.
TEST_P(ProtocolTest, ABranchTakenIsAsGoodAsAProposalToldInFull) {
  Both taken(GetParam());
  Both told(GetParam());
  for (int round = 0; round < 8; ++round) {
    taken.Work();
    told.Work();
    const auto prepared = taken.Prepared();
    const auto as_prepared = told.Prepared();
    ASSERT_GE(prepared.size(), std::size_t{kFanout}) << round;
    ExpectSameAnswers(prepared, as_prepared);
    const auto which = (5 * round) % std::ssize(prepared);
    const Path path = std::next(prepared.begin(), which)->first;
    const auto next_of = [&](const CacheAnswer& answer) {
      Proposal next = answer.proposal;
      if (round % 3 == 2) next.Prune(2, kMaxProposal);
      return next;
    };
    taken.Send(path, prepared.at(path).outcome, next_of(prepared.at(path)));
    EXPECT_LT(taken.pair_.to_speculator.back().size(), 80U);
    Proposal in_full = next_of(as_prepared.at(path));
    in_full.source = ProposalSource::kNgram;
    told.Send(path, as_prepared.at(path).outcome, in_full);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, ProtocolTest, testing::Values(1, 3));

// The engine may have verified less of a tree than the speculator has read: what it then says may
// be a token that was in it.
TEST(Speculator, DraftsBehindATokenThatItHasReadAlready) {
  Both read(1);
  Both other(1);
  read.Work();
  other.Work();
  const auto prepared = read.Prepared();
  const auto longest = std::ranges::max_element(
      prepared, {}, [](const auto& of) { return of.second.proposal.size(); });
  const auto& [path, answer] = *longest;
  ASSERT_GE(answer.proposal.size(), 2);
  const Token next = answer.proposal.tokens[0];
  read.Send(path, answer.outcome, answer.proposal);
  other.Send(path, answer.outcome, {});
  read.Work();
  other.Work();
  const Proposal proposal = read.JustInTime(next);
  EXPECT_EQ(proposal.size(), kLookahead);
  EXPECT_EQ(PathsOf(proposal), PathsOf(other.JustInTime(next)));
}

TEST(Speculator, HoldsNothingUpWhileItReadsALongContext) {
  Both at_once(1, 100);
  EXPECT_EQ(at_once.JustInTime(7).size(), kLookahead);
  Both in_two_passes(1, 150);
  EXPECT_EQ(in_two_passes.JustInTime(7).size(), 0);
  EXPECT_EQ(in_two_passes.JustInTime(8).size(), kLookahead);
}

TEST(Speculator, RefusesAForeignEngine) {
  const auto backend = MakeReferenceBackend(Precision::kF32);
  const auto model = TinyModel(backend.get());
  const auto answer = [&](const HelloMessage& hello) {
    ChannelPair pair;
    Speculator speculator(model.get(), &pair.speculator, nullptr, ModelIdentity::Of("mine", ""));
    SendMessage(hello, &pair.engine);
    SendMessage(ShutdownMessage{}, &pair.engine);
    const Status status = speculator.Run([](void*) { return false; }, nullptr);
    EXPECT_EQ(KindOf(pair.to_engine.front()), MessageKind::kHello) << "it says what it is itself";
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(answer({.draft = ModelIdentity::Of("mine", "")}), "");
  EXPECT_EQ(answer({.draft = ModelIdentity::Of("yours", "")}),
            "the engine has another draft model: both sides must have loaded the same");
  EXPECT_THAT(answer({.version = 1}), testing::HasSubstr("the engine speaks version 1"));
}

TEST(Speculator, RecordsThatMakeNoSenseChangeNothing) {
  Both both(1);
  for (std::uint32_t kind = 3; kind < 32; ++kind) {
    if (kind == static_cast<std::uint32_t>(MessageKind::kShutdown)) continue;
    for (const std::size_t size : {std::size_t{4}, std::size_t{17}, std::size_t{200}}) {
      std::vector<std::byte> record(size, std::byte{0x7f});
      std::memcpy(record.data(), &kind, sizeof(kind));
      ASSERT_TRUE(both.pair_.engine.Send(record));
    }
  }
  both.Work();
  EXPECT_EQ(both.Prepared().size(), std::size_t{kFanout});
}

}  // namespace
}  // namespace foretoken
