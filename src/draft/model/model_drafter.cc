#include "draft/model/draft_model.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

// Speculative decoding's drafter: a draft model that proposes chains or trees, all sequences
// together, one pass per level. Ranks its candidates under the target's own noise and sampler
// options.
class ModelDrafter : public Drafter {
 public:
  ModelDrafter(DrafterId id, const DrafterParts& parts);

  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;

 private:
  struct Slot {
    SequenceId sequence = 0;
    bool used = false;
    DraftTrunk trunk;
  };
  Slot& SlotFor(SequenceId sequence);
  // Computes committed tokens of which there are too many for a pass that drafts.
  void ReadContexts(std::span<DraftContext> contexts);
  // Ranks the candidates after every node that the pass just made says something of, or draws them
  // and sets their law.
  void TakeRows(std::span<DraftContext> contexts, Logits logits);
  // A node, and the row of the pass that says what follows the root of what it belongs to.
  struct Asked {
    int context;
    int node;
    std::int64_t first;
    int depth;  // Below that root.
  };
  void Ask(std::span<const DraftContext> contexts, const Asked& asked);
  // Of all nodes that were asked for.
  void TakeAnswers(std::span<DraftContext> contexts);
  // Those after one node.
  Ranking Rank(const DraftContext& context, const Proposal& proposal, int node,
               const SaidRow& said);

  const ProposalSource source_;
  std::shared_ptr<Model> model_;
  DraftModel draft_;
  std::vector<Slot> slots_;
  // Contexts with rows in the current pass, and the nodes that drafting rows are of, in order.
  std::vector<int> drafting_;
  std::vector<TreeNodes> nodes_;
  std::vector<std::int64_t> firsts_;  // Of each of `drafting_`, its first row of logits.
  std::vector<Asked> asked_;
};

ModelDrafter::ModelDrafter(DrafterId id, const DrafterParts& parts)
    : source_(ProposalSource::Of(id)),
      model_(parts.draft),
      draft_(model_.get(), parts.max_sequences, parts.max_context, /*scratch=*/0),
      slots_(static_cast<std::size_t>(parts.max_sequences)) {
  // A pass computes one level of each sequence's tree: n nodes at depth d, n + d at most kNodes.
  constexpr int kNodes = kMaxProposal + 1;
  const std::size_t sequences = slots_.size();
  draft_.batch.rows.reserve(sequences * kNodes);
  draft_.said.Reserve(sequences * kNodes);
  asked_.reserve(sequences * kNodes);
  drafting_.reserve(sequences);
  firsts_.reserve(sequences);
  nodes_.reserve(sequences);
  draft_.batch.block_tables.reserve(sequences);
  draft_.batch.tail_slots.reserve(sequences * (kNodes / 2) * (kNodes / 2));
  draft_.batch.path_tokens.reserve(sequences * (kNodes / 2) * (kNodes / 2));
}

ModelDrafter::Slot& ModelDrafter::SlotFor(SequenceId sequence) {
  Slot* unused = nullptr;
  for (Slot& slot : slots_) {
    if (slot.used && slot.sequence == sequence) return slot;
    if (!slot.used) unused = &slot;
  }
  FT_CHECK(unused != nullptr, "more sequences than the drafter was made for");
  unused->used = true;
  unused->sequence = sequence;
  return *unused;
}

void ModelDrafter::Forget(SequenceId sequence) {
  for (Slot& slot : slots_) {
    if (!slot.used || slot.sequence != sequence) continue;
    draft_.pool.Release(&slot.trunk.kv);
    slot = Slot{};
  }
}

void ModelDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    DraftTrunk& trunk = SlotFor(context.sequence).trunk;
    if (trunk.committed() == 0) trunk.Begin(draft_, /*draws=*/context.laws != nullptr);
    trunk.Commit(context.tokens.subspan(draft_.tokens_without_row() + trunk.committed()), draft_);
    if (draft_.reads_features()) trunk.features.Append(context.taps, trunk.readable());
    trunk.Plan(context.tree_width, context.lookahead, context.max_nodes,
               context.sampling->temperature, draft_);
  }
  ReadContexts(contexts);
  nodes_.resize(contexts.size());
  draft_.AllowMaskWork();
  for (;;) {
    draft_.batch.Clear();
    drafting_.clear();
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      DraftTrunk& trunk = SlotFor(contexts[i].sequence).trunk;
      trunk.KeepBest(draft_);
      if (trunk.AppendDraftRows(draft_, &nodes_[i])) {
        drafting_.push_back(static_cast<int>(i));
      }
    }
    if (drafting_.empty()) break;
    TakeRows(contexts, draft_.model->Forward(draft_.batch, draft_.kv));
  }
  for (DraftContext& context : contexts) {
    *context.proposal = SlotFor(context.sequence).trunk.tree.proposal();
    if (context.proposal->size() > 0) context.proposal->source = source_;
  }
}

void ModelDrafter::ReadContexts(std::span<DraftContext> contexts) {
  for (;;) {
    draft_.batch.Clear();
    drafting_.clear();
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      if (SlotFor(contexts[i].sequence).trunk.AppendReadingRows(draft_)) {
        drafting_.push_back(static_cast<int>(i));
      }
    }
    if (drafting_.empty()) return;
    (void)draft_.model->Forward(draft_.batch, draft_.kv);
    for (const int i : drafting_) SlotFor(contexts[i].sequence).trunk.TakeRead();
  }
}

Ranking ModelDrafter::Rank(const DraftContext& context, const Proposal& proposal, int node,
                           const SaidRow& said) {
  const auto path = PathTokens(proposal, node);
  std::span<const TokenProbability> law;
  const Ranking ranking = RankRow(draft_, said, *context.sampling, *context.history,
                                  {.root = context.tokens.size() - 1,
                                   .path = path,
                                   .children = context.tree_width,
                                   .seed = context.sampling->seed},
                                  context.laws == nullptr ? nullptr : &law);
  if (context.laws != nullptr) context.laws->SetListed(node, law);
  return ranking;
}

void ModelDrafter::Ask(std::span<const DraftContext> contexts, const Asked& asked) {
  const DraftTrunk& trunk = SlotFor(contexts[asked.context].sequence).trunk;
  draft_.said.Ask(asked.first, asked.depth, trunk.last_token(),
                  PathTokens(trunk.tree.proposal(), asked.node));
  asked_.push_back(asked);
}

void ModelDrafter::TakeAnswers(std::span<DraftContext> contexts) {
  draft_.said.Answer();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const DraftContext& context = contexts[asked_[i].context];
    DraftTrunk& trunk = SlotFor(context.sequence).trunk;
    const int node = asked_[i].node;
    const Ranking ranking = Rank(context, trunk.tree.proposal(), node, draft_.said.At(i));
    if (asked_[i].depth == 0) {
      trunk.TakeRanking(node, ranking);
    } else {
      trunk.TakeRootsRanking(node, ranking);
    }
  }
  asked_.clear();
  draft_.said.Clear();
}

void ModelDrafter::TakeRows(std::span<DraftContext> contexts, Logits logits) {
  const float* state = draft_.model->states();
  draft_.said.Begin(draft_.batch, logits);
  firsts_.clear();
  std::int64_t row = 0;
  for (const int i : drafting_) {
    DraftTrunk& trunk = SlotFor(contexts[i].sequence).trunk;
    firsts_.push_back(row);
    for (const int node : nodes_[i]) {
      if (draft_.leaves_states()) {
        trunk.TakeState(node, state);
        state += draft_.model->config().hidden;
      }
      Ask(contexts, {.context = i, .node = node, .first = row, .depth = 0});
      row += trunk.depths(draft_);
    }
  }
  // Level by level, of which each may add the next.
  for (int depth = 1; !asked_.empty(); ++depth) {
    TakeAnswers(contexts);
    for (std::size_t i = 0; i < drafting_.size(); ++i) {
      const DraftTrunk& trunk = SlotFor(contexts[drafting_[i]].sequence).trunk;
      if (depth >= trunk.depths(draft_)) continue;
      for (const int node : WantedAt(trunk.tree, trunk.shape, depth)) {
        Ask(contexts, {.context = drafting_[i], .node = node, .first = firsts_[i], .depth = depth});
      }
    }
  }
}

}  // namespace

std::unique_ptr<Drafter> MakeModelDrafter(const DrafterParts& parts) {
  return std::make_unique<ModelDrafter>(DrafterId::kModel, parts);
}

std::unique_ptr<Drafter> MakeModel2Drafter(const DrafterParts& parts) {
  return std::make_unique<ModelDrafter>(DrafterId::kModel2, parts);
}

std::unique_ptr<Drafter> MakeModel3Drafter(const DrafterParts& parts) {
  return std::make_unique<ModelDrafter>(DrafterId::kModel3, parts);
}

}  // namespace foretoken
