#include "draft/model_drafter.h"

#include <algorithm>

namespace foretoken {

ModelDrafter::ModelDrafter(LlamaModel* model, int max_sequences, int max_context)
    : draft_(model, max_sequences, max_context, /*scratch=*/0), slots_(max_sequences) {}

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
  int steps = 0;
  for (DraftContext& context : contexts) {
    context.proposal->Clear();
    SlotFor(context.sequence).trunk.SetPath(context.tokens, {});
    steps = std::max(steps, context.lookahead);
  }
  for (int step = 0; step < steps; ++step) {
    ForwardBatch& batch = draft_.batch;
    batch.Clear();
    drafting_.clear();
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      if (contexts[i].proposal->size() != step || contexts[i].lookahead <= step) continue;
      DraftTrunk& trunk = SlotFor(contexts[i].sequence).trunk;
      const std::int32_t end = trunk.length();
      // Beyond the draft's own context there is nothing to propose.
      if (end > draft_.max_context) continue;
      if (!trunk.AppendRows(draft_, end, end - 1, &batch)) continue;
      trunk.kv_length = end;
      drafting_.push_back(static_cast<int>(i));
    }
    if (drafting_.empty()) return;
    TakeTokens(contexts, draft_.model->Forward(batch, draft_.kv));
  }
}

void ModelDrafter::TakeTokens(std::span<DraftContext> contexts, const float* logits) {
  const int vocabulary = draft_.model->config().vocabulary;
  for (std::size_t row = 0; row < drafting_.size(); ++row) {
    DraftContext& context = contexts[drafting_[row]];
    Proposal& proposal = *context.proposal;
    const auto position = context.tokens.size() + proposal.size();
    const Candidate best = draft_.sampler.Choose(logits + row * vocabulary, *context.sampling,
                                                 *context.history, proposal.tokens, position);
    proposal.source = ProposalSource::kDraft;
    proposal.Extend(best.token);
    SlotFor(context.sequence).trunk.SetPath(context.tokens, proposal.tokens);
  }
}

}  // namespace foretoken
