// The speculator alone with drafts that are trained to draft: what it prepares, round by round,
// against what is worked out afresh.

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/draft/model/draft_model.h"
#include "tests/engine/learned_draft_testing.h"

namespace foretoken::learned_testing {
namespace {

class LearnedSpeculator : public LearnedDraft {
 protected:
  static constexpr int kLookahead = 3;
  static constexpr int kFanout = 4;

  LearnedSpeculator() {
    EngineConfig options{.plan = plan_, .max_batch = 1};
    options.plan.mode = Mode::kSsd;
    client_ = StartSpeculator(options);
    KvShape shape = target_.model->KvShapeFor(kContext / kBlockSize);
    shape.taps = {.points = GetParam().feature.points, .hidden = kTargetHidden};
    kv_ = target_.backend->AllocateKv(shape);
    for (int block = 0; block < shape.blocks; ++block) sequence_.blocks.push_back(block);
  }

  TapRows taps() const { return {&kv_.taps, &sequence_}; }

  // The target computes all tokens but the last.
  void RunTarget() {
    ForwardBatch batch;
    batch.block_tables.push_back(sequence_.blocks.data());
    for (; sequence_.committed + 1 < std::ssize(tokens_); ++sequence_.committed) {
      const std::int32_t position = sequence_.committed;
      batch.rows.push_back({.token = tokens_[position],
                            .place = {position, sequence_.SlotOf(position), 0, position + 1, 0},
                            .wants_logits = false});
    }
    (void)target_.model->Forward(batch, kv_);
  }

  // What masks say behind the committed tokens and `path`, whose states are not there yet.
  std::vector<Token> InMasks(const std::vector<Token>& path, int count) {
    DraftModel draft(draft_.model.get(), 1, kContext, 0);
    DraftTrunk trunk;
    BeginTrunk(&trunk, &draft);
    Proposal walked;
    for (const Token token : path) walked.Extend(token);
    trunk.tree.Assign(walked);
    RowPlacer placer = draft.PlacerFor(trunk.kv);
    trunk.AppendCommittedRows(kContext, &placer, &draft.batch);
    for (int node = 1; node <= walked.size(); ++node) {
      trunk.AppendNodeRow(node, &placer, &draft.batch);
    }
    for (int depth = 1; depth < count; ++depth) {
      draft.batch.rows.push_back({.token = GetParam().parallel.mask_token,
                                  .place = placer.Committed(trunk.root() + walked.size() + depth)});
    }
    const Logits logits = draft.model->Forward(draft.batch, draft.kv.store());
    return BestByDepth(draft, logits, walked.size(), path, count);
  }

  void BeginTrunk(DraftTrunk* trunk, DraftModel* draft) {
    trunk->Begin(*draft, false);
    trunk->Commit(std::span<const Token>(tokens_).subspan(draft->tokens_without_row()), *draft);
    if (draft->reads_features()) trunk->features.Append(taps(), trunk->readable());
    EXPECT_TRUE(trunk->Reserve(kContext, *draft));
  }

  // The chain of the best tokens behind `path` by rows of logits of one depth each.
  std::vector<Token> BestByDepth(DraftModel& draft, Logits logits, std::int64_t first,
                                 std::vector<Token> path, int count) {
    const TokenHistory history(kVocabulary);
    std::vector<Token> chain;
    for (int depth = 0; depth < count; ++depth) {
      draft.said.Begin(draft.batch, logits);
      draft.said.Ask(first, depth, tokens_.back(), path);
      draft.said.Answer();
      const Ranking best = RankRow(draft, draft.said.At(0), sampling_, history,
                                   {.root = tokens_.size() - 1, .path = path});
      chain.push_back(best[0].token);
      path.push_back(best[0].token);
    }
    return chain;
  }

  // What a block says that begins at the last committed token and goes on with `path`.
  std::vector<Token> InBlock(const std::vector<Token>& path, int count) {
    DraftModel draft(draft_.model.get(), 1, kContext, 0);
    DraftTrunk trunk;
    BeginTrunk(&trunk, &draft);
    RowPlacer placer = draft.PlacerFor(trunk.kv);
    trunk.AppendCommittedRows(kContext, &placer, &draft.batch);
    const std::size_t first = draft.batch.rows.size();
    const int known = path.size();
    trunk.AppendMaskRows(count, &placer, &draft.batch);
    for (int row = 0; row < GetParam().parallel.block; ++row) {
      ForwardRow& each = draft.batch.rows[first + Size(row)];
      if (row > 0 && row <= known) each.token = path[row - 1];
      each.wants_logits = GetParam().parallel.Says(row, count, known);
    }
    const Logits logits = draft.model->Forward(draft.batch, draft.kv.store());
    return BestByDepth(draft, logits, 0, path, count);
  }

  // The chain of the draft's best tokens behind the committed ones and `path`, of true features
  // as far as they go and of its own states from there on.
  std::vector<Token> Chain(const std::vector<Token>& path, int count) {
    if (GetParam().parallel.block > 0) return InBlock(path, count);
    if (GetParam().parallel.there()) return InMasks(path, count);
    DraftModel draft(draft_.model.get(), 1, kContext, 0);
    DraftTrunk trunk;
    trunk.Begin(draft, false);
    trunk.Commit(std::span<const Token>(tokens_).subspan(1), draft);
    trunk.features.Append(taps(), trunk.committed());
    Proposal walked;
    for (const Token token : path) walked.Extend(token);
    std::vector<Token> chain;
    TokenHistory history(kVocabulary);
    for (int node = 0; std::ssize(chain) < count; ++node) {
      trunk.tree.Assign(walked);
      EXPECT_TRUE(trunk.Reserve(kContext, draft));
      draft.batch.Clear();
      RowPlacer placer = draft.PlacerFor(trunk.kv);
      if (node == 0) {
        trunk.AppendCommittedRows(kContext, &placer, &draft.batch);
      } else {
        trunk.AppendNodeRow(node, &placer, &draft.batch);
      }
      const Logits logits = draft.model->Forward(draft.batch, draft.kv.store());
      trunk.TakeState(node, draft.model->states());
      const auto before = PathTokens(walked, node);
      const Ranking best =
          RankRow(draft, {.logits = logits, .confidence = {}}, sampling_, history,
                  {.root = tokens_.size() - 1, .path = before, .children = 1, .candidates = 0});
      if (node < std::ssize(path)) continue;
      chain.push_back(best[0].token);
      walked.Extend(best[0].token);
    }
    return chain;
  }

  // Once everything is prepared at `node` of the proposal, which is a chain.
  std::vector<CacheAnswer> PreparedAt(int node) {
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    std::vector<CacheAnswer> prepared;
    while (NowNs() < deadline) {
      client_->Poll();
      std::vector<Token> bonuses;
      client_->PreparedAt(1, node, &bonuses);
      prepared.clear();
      for (const Token bonus : bonuses) {
        prepared.push_back(client_->Lookup(1, {node, bonus}));
        if (prepared.back().proposal.size() < kLookahead) prepared.pop_back();
      }
      if (prepared.size() == kFanout) return prepared;
    }
    ADD_FAILURE() << "only " << prepared.size() << " branches after 20 s";
    return prepared;
  }

  void CheckAt(int node, const Proposal& proposal) {
    for (const CacheAnswer& answer : PreparedAt(node)) {
      std::vector<Token> path;
      for (const Token token : PathTokens(proposal, node)) path.push_back(token);
      path.push_back(answer.outcome.bonus);
      EXPECT_EQ(std::vector(answer.proposal.tokens.begin(), answer.proposal.tokens.end()),
                Chain(path, kLookahead))
          << "behind " << tokens_.size() << " tokens, at node " << node;
    }
  }

  SpeculationPlan plan_{.mode = Mode::kSsd,
                        .lookahead = kLookahead,
                        .primary = UniformFanout(kFanout, kLookahead),
                        .after_fallback = UniformFanout(kFanout, kLookahead)};
  SamplingParams sampling_{.temperature = 1.0F, .seed = 12};
  std::vector<Token> tokens_ = Prompts()[0];
  SequenceKv sequence_;
  KvStore kv_;
  std::unique_ptr<SpeculatorClient> client_;
};

TEST_P(LearnedSpeculator, PreparesWhatFollowsFromTrueFeaturesAndItsOwnStates) {
  RunTarget();
  client_->Open({.sequence = 1,
                 .tokens = tokens_,
                 .prompt_tokens = static_cast<std::int32_t>(tokens_.size()),
                 .sampling = &sampling_,
                 .plan = &plan_,
                 .taps = taps()});
  Proposal proposal;
  for (int round = 0; round < 6; ++round) {
    CheckAt(0, proposal);
    // Where the proposal is another's, all of its nodes follow from the root. Where it was
    // prepared, the rows that were stay, made before the root's true feature was there; of heads
    // and of drafts that say several positions in a pass none do.
    const bool follow = proposal.source == ProposalSource::kNgram || GetParam().parallel.there() ||
                        GetParam().feature.sequential();
    for (int node = 1; follow && node <= proposal.size(); ++node) {
      CheckAt(node, proposal);
    }
    const int node = std::min(round % 3, Int(proposal.size()));
    const CacheAnswer taken = PreparedAt(node).front();
    std::vector<Token> emitted;
    for (const Token token : PathTokens(proposal, node)) emitted.push_back(token);
    emitted.push_back(taken.outcome.bonus);
    if (round % 2 == 0) {
      proposal = taken.proposal;
    } else {
      proposal.Clear();
      proposal.Extend((taken.proposal.tokens[0] + 1) % kVocabulary);
      proposal.Extend(9);
      proposal.source = ProposalSource::kNgram;
    }
    tokens_.insert(tokens_.end(), emitted.begin(), emitted.end());
    RunTarget();
    client_->SendOutcome(1, taken.outcome, emitted, proposal, plan_, false, taps());
  }
}

// Kinds whose branches are all as long as asked for: no confidence cuts them, and behind the
// deepest node blocks still have as many places.
std::vector<Kind> UncutKinds() {
  std::vector<Kind> kinds = Kinds();
  std::erase_if(kinds, [](const Kind& kind) {
    return kind.markov.confidence || (kind.parallel.block > 0 && kind.parallel.positions < 7);
  });
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, LearnedSpeculator, testing::ValuesIn(UncutKinds()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken::learned_testing
