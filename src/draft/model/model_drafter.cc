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
  // Those after one node.
  Ranking Rank(const DraftContext& context, const Proposal& proposal, int node, Logits logits);

  const ProposalSource source_;
  std::shared_ptr<Model> model_;
  DraftModel draft_;
  std::vector<Slot> slots_;
  // Contexts with rows in the current pass, and the nodes that drafting rows are of, in order.
  std::vector<int> drafting_;
  std::vector<StaticVector<std::int8_t, kMaxProposal + 1>> nodes_;
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
                           Logits logits) {
  const auto path = PathTokens(proposal, node);
  std::span<const TokenProbability> law;
  const Ranking ranking = RankRow(draft_, logits, *context.sampling, *context.history,
                                  {.root = context.tokens.size() - 1,
                                   .path = path,
                                   .children = context.tree_width,
                                   .seed = context.sampling->seed},
                                  context.laws == nullptr ? nullptr : &law);
  if (context.laws != nullptr) context.laws->SetListed(node, law);
  return ranking;
}

void ModelDrafter::TakeRows(std::span<DraftContext> contexts, Logits logits) {
  const float* state = draft_.model->states();
  const int vocabulary = draft_.model->config().vocabulary;
  for (const int i : drafting_) {
    const DraftContext& context = contexts[i];
    DraftTrunk& trunk = SlotFor(context.sequence).trunk;
    const Proposal& proposal = trunk.tree.proposal();
    for (const int node : nodes_[i]) {
      if (draft_.leaves_states()) {
        trunk.TakeState(node, state);
        state += draft_.model->config().hidden;
      }
      trunk.TakeRanking(node, Rank(context, proposal, node, logits));
      const int depths = trunk.depths(draft_);
      GrowByDepths(trunk.tree, trunk.shape, depths, [&](int below, int depth) {
        trunk.TakeRootsRanking(below,
                               Rank(context, proposal, below, logits.Row(depth, vocabulary)));
      });
      logits = logits.Row(depths, vocabulary);
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
