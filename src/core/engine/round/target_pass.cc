#include "core/engine/round/target_pass.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// A pass commits a proposal and its root at most beyond what recurrent layers have states of: those
// of the block of the root or, where that was given up with what was rejected, of the one before.
static_assert(kDeltaReach > kMaxProposal + 1 + 2 * kBlockSize);

// Rows of a pass that want them.
struct Wanted {
  int logits = 0;
  int states = 0;
};

// Adds what the pass computes of a sequence: `pass_rows` committed tokens and, where it verifies,
// its proposal.
void AppendRows(Sequence* sequence, ForwardBatch* batch, Wanted* wanted) {
  RowPlacer placer(sequence->kv, &batch->block_tables, &batch->tail_slots);
  sequence->prompt_logits = 0;
  sequence->first_prompt_logits = wanted->logits;
  sequence->states = 0;
  sequence->first_state = wanted->states;
  const std::int32_t begin = sequence->kv.committed;
  const std::int32_t end = begin + sequence->pass_rows;
  for (std::int32_t position = begin; position < end; ++position) {
    const bool scores = sequence->Scores(position);
    if (scores) ++sequence->prompt_logits;
    const bool pools = sequence->Pools(position);
    if (pools) ++sequence->states;
    const bool chooses = sequence->verifies && position == sequence->root();
    batch->rows.push_back({.token = sequence->tokens[position],
                           .place = placer.Committed(position),
                           .wants_logits = scores || chooses,
                           .wants_state = pools,
                           .adapter = sequence->request.adapter});
  }
  wanted->states += sequence->states;
  wanted->logits += sequence->prompt_logits;
  sequence->first_logits = wanted->logits;
  if (!sequence->verifies) return;
  const Proposal& proposal = sequence->proposal;
  wanted->logits += 1 + proposal.size();
  const KvTree tree(sequence->root(), proposal.parents);
  for (int node = 1; node <= proposal.size(); ++node) {
    batch->rows.push_back({.token = proposal.tokens[node - 1],
                           .place = placer.Node(tree, node),
                           .wants_logits = true,
                           .adapter = sequence->request.adapter});
  }
}

}  // namespace

bool PlanPass(int prompt_budget, Scheduler* scheduler, Round* round, ForwardBatch* batch) {
  int scored_budget = kScoredRowsPerPass;
  // Preemption shortens the running set from its young end, so an index stays valid.
  for (std::size_t i = 0; i < scheduler->running().size(); ++i) {
    Sequence* sequence = scheduler->running()[i].get();
    sequence->in_pass = false;
    if (sequence->awaits_mask) continue;
    const int left = sequence->uncomputed();
    const bool scores = sequence->scores_prompt();
    const int most = scores ? std::min(prompt_budget, scored_budget) : prompt_budget;
    const int rows = left == 1 ? 1 : std::min(left, most);
    sequence->verifies = rows == left && sequence->request.stop.max_tokens > 0;
    if (rows == 0) continue;
    const std::int32_t end =
        sequence->kv.committed + rows + (sequence->verifies ? sequence->proposal.size() : 0);
    if (!scheduler->Reserve(sequence, end)) continue;
    if (rows > 1) prompt_budget -= rows;
    if (scores) scored_budget -= rows;
    sequence->in_pass = true;
    sequence->pass_rows = rows;
  }
  round->pass.clear();
  round->prefills = false;
  batch->Clear();
  Wanted wanted;
  for (const auto& sequence : scheduler->running()) {
    if (!sequence->in_pass) continue;
    round->prefills = round->prefills || sequence->pass_rows > 1 || !sequence->verifies;
    AppendRows(sequence.get(), batch, &wanted);
    round->pass.push_back(sequence.get());
  }
  round->rows = Int(batch->rows.size());
  return !round->pass.empty();
}

TargetPass::TargetPass(Model* target, const KvCache& kv, const TapShape& taps, int max_batch,
                       int prefill_chunk)
    : target_(target),
      kv_(AllocateKv(target->KvShapeFor(0, taps), kv, &target->backend())),
      prefill_chunk_(prefill_chunk) {
  batch_.block_tables.reserve(max_batch);
}

bool TargetPass::Plan(const RetrievalBudget& budget, Scheduler* scheduler, Round* round) {
  // How many rows a pass has depends on what the drafts have proposed, under SSD on how fast they
  // were: room for the most that the plans allow comes at once.
  const int batch = scheduler->running().size();
  std::size_t rows = 0;
  std::size_t tails = 0;
  for (const auto& sequence : scheduler->running()) {
    const std::size_t nodes = budget.MostNodes(sequence->plan, batch);
    rows += 1 + nodes;
    tails += nodes * (nodes + 1) / 2;  // At most i nodes are on the path to node i.
  }
  batch_.rows.reserve(rows);
  batch_.tail_slots.reserve(tails);
  target_->Reserve(rows, rows);
  return PlanPass(prefill_chunk_, scheduler, round, &batch_);
}

}  // namespace foretoken
