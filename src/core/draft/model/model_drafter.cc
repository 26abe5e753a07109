#include "core/draft/model/model_drafter.h"

#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/draft/text/text_drafter.h"

namespace foretoken {
namespace {

// By tokens, or where it has others than the target by text.
std::unique_ptr<Drafter> MakeUsual(DrafterId id, const DrafterParts& parts) {
  if (parts.text != nullptr) return std::make_unique<TextDrafter>(id, parts);
  return std::make_unique<ModelDrafter>(id, parts);
}

}  // namespace

ModelDrafter::ModelDrafter(DrafterId id, const DrafterParts& parts, std::unique_ptr<Stage> helper,
                           StageWorth worth)
    : source_(ProposalSource::Of(id)),
      model_(parts.draft),
      draft_(parts.on_target_kv ? DraftModel(model_.get(), parts.max_context)
                                : DraftModel(model_.get(), parts.max_sequences, parts.max_context,
                                             /*scratch=*/0)),
      slots_(parts.max_sequences),
      helper_(std::move(helper)),
      worth_(worth) {
  FT_CHECK(helper_ == nullptr || CanBeStage(model_->config()), "no draft to have a helper");
  // A pass computes one level of each sequence's tree: n nodes at depth d, n + d at most kNodes.
  constexpr int kNodes = kMaxProposal + 1;
  const std::size_t sequences = slots_.size();
  draft_.batch.rows.reserve(sequences * kNodes);
  draft_.said.Reserve(sequences * kNodes);
  asked_.reserve(sequences * kNodes);
  drafting_.reserve(sequences);
  firsts_.reserve(sequences);
  nodes_.reserve(sequences);
  drafted_.reserve(sequences);
  helper_contexts_.reserve(sequences);
  helper_drafted_.reserve(sequences);
  guesses_.resize(sequences);
  draft_.batch.block_tables.reserve(sequences);
  draft_.batch.tail_slots.reserve(sequences * (kNodes / 2) * (kNodes / 2));
  draft_.batch.path_tokens.reserve(sequences * (kNodes / 2) * (kNodes / 2));
}

void ModelDrafter::Forget(SequenceId sequence) {
  slots_.Forget(sequence, [this](Slot& slot) {
    draft_.kv.Release(&slot.trunk.kv);
    slot = Slot{};
  });
  if (helper_ != nullptr) helper_->Forget(sequence);
}

void ModelDrafter::Observe(const VerifiedProposal& verified) {
  if (helper_ != nullptr) helper_->Observe(verified);
}

void ModelDrafter::Propose(std::span<DraftContext> contexts) {
  drafted_.assign(contexts.size(), 0);
  ProposeBehind(contexts, drafted_);
}

void ModelDrafter::Commit(const DraftContext& context, int drafted) {
  Slot& slot = slots_.For(context.sequence);
  DraftTrunk& trunk = slot.trunk;
  if (trunk.committed() == 0) trunk.Begin(draft_, /*draws=*/context.distributions != nullptr);
  trunk.Rewind(context.tokens, slot.settled, draft_);
  if (helper_ != nullptr) {
    if (slot.text.capacity() == 0) slot.text.reserve(DraftModel::kFirstCapacity);
    slot.text.resize(trunk.committed());
    const auto unknown = context.tokens.subspan(slot.text.size());
    slot.text.insert(slot.text.end(), unknown.begin(), unknown.end());
  }
  slot.settled = static_cast<std::int32_t>(context.tokens.size()) - drafted;
  trunk.Commit(context.tokens.subspan(draft_.tokens_without_row() + trunk.committed()), draft_);
  if (draft_.kv.is_targets()) draft_.kv.Show(context.target_kv, &trunk.kv);
  if (draft_.reads_features()) trunk.features.Append(context.taps, trunk.readable());
  trunk.Plan(WidthOf(context), context.lookahead, context.max_nodes, context.sampling->temperature,
             draft_);
}

void ModelDrafter::ProposeBehind(std::span<DraftContext> contexts, std::span<const int> drafted) {
  if (drafted.data() != drafted_.data()) drafted_.assign(drafted.begin(), drafted.end());
  for (std::size_t i = 0; i < contexts.size(); ++i) Commit(contexts[i], drafted_[i]);
  if (draft_.kv.is_targets()) ReserveRows(contexts);
  ReadContexts(contexts);
  nodes_.resize(contexts.size());
  draft_.AllowMaskWork();
  for (;;) {
    if (helper_ != nullptr) AskHelper(contexts);
    draft_.batch.Clear();
    drafting_.clear();
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      DraftTrunk& trunk = TrunkOf(contexts[i]);
      trunk.KeepBest(draft_);
      if (trunk.AppendDraftRows(draft_, guesses_[i], &nodes_[i])) {
        drafting_.push_back(Int(i));
      }
    }
    if (drafting_.empty()) break;
    const std::int64_t start = NowNs();
    const Logits logits = draft_.kv.Forward(draft_.batch);
    ++passes_;
    if (helper_ == nullptr) {
      TakeRows(contexts, logits);
      continue;
    }
    ObservePass(NowNs() - start);
    TakeGuessedRows(contexts, logits);
  }
  for (DraftContext& context : contexts) {
    *context.proposal = TrunkOf(context).tree.proposal();
    if (context.proposal->size() > 0) context.proposal->source = source_;
  }
}

void ModelDrafter::ObservePass(std::int64_t ns) {
  std::size_t rows = 0;
  for (const int i : drafting_) rows += nodes_[i].size();
  // One that reads much of a text first tells nothing of others.
  if (draft_.batch.rows.size() > rows + 2 * drafting_.size()) return;
  worth_.ObservePass(Int(drafting_.size()), static_cast<int>(rows), ns);
}

void ModelDrafter::AskHelper(std::span<DraftContext> contexts) {
  helper_contexts_.clear();
  helper_drafted_.clear();
  guess_distributions_.Clear();
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const DraftContext& context = contexts[i];
    Slot& slot = slots_.For(context.sequence);
    const Proposal& chain = slot.trunk.tree.proposal();
    guesses_[i].Clear();
    if (!slot.trunk.tree.Wants(chain.size(), slot.trunk.shape)) continue;
    // Behind the last guess the model says one token more.
    const int length = worth_.Ask(slot.trunk.shape.levels() - chain.size() - 1);
    if (length == 0) continue;
    slot.text.resize(context.tokens.size());
    slot.text.insert(slot.text.end(), chain.tokens.begin(), chain.tokens.end());
    helper_contexts_.push_back(
        {.sequence = context.sequence,
         .tokens = slot.text,
         .sampling = context.sampling,
         .history = context.history,
         .prediction = context.prediction,
         .datastore = context.datastore,
         .scope = context.scope,
         .lookahead = length,
         .max_nodes = length,
         .proposal = &guesses_[i],
         .distributions = context.distributions == nullptr ? nullptr : &guess_distributions_});
    helper_drafted_.push_back(drafted_[i] + chain.size());
  }
  if (helper_contexts_.empty()) return;
  const std::int64_t start = NowNs();
  helper_->ProposeBehind(helper_contexts_, helper_drafted_);
  int tokens = 0;
  for (const DraftContext& context : helper_contexts_) tokens += context.proposal->size();
  worth_.ObserveAsking(tokens, NowNs() - start);
}

void ModelDrafter::ReserveRows(std::span<const DraftContext> contexts) {
  std::size_t rows = 0;
  for (const DraftContext& context : contexts) {
    const bool one = WidthOf(context) == 1 && helper_ == nullptr;
    rows += one ? 1 : std::max(1, context.max_nodes);
  }
  model_->Reserve(rows, rows);
}

void ModelDrafter::ReadContexts(std::span<DraftContext> contexts) {
  for (;;) {
    draft_.batch.Clear();
    drafting_.clear();
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      if (TrunkOf(contexts[i]).AppendReadingRows(draft_)) drafting_.push_back(Int(i));
    }
    if (drafting_.empty()) return;
    (void)draft_.kv.Forward(draft_.batch);
    for (const int i : drafting_) TrunkOf(contexts[i]).TakeRead();
  }
}

Ranking ModelDrafter::Rank(const DraftContext& context, int i, const Proposal& proposal, int node,
                           const SaidRow& said) {
  // From the last token that is committed, where the history ends.
  const std::size_t drafted = drafted_[i];
  StaticVector<Token, std::size_t{2} * kMaxProposal> path;
  for (const Token token : context.tokens.last(drafted)) path.push_back(token);
  for (const Token token : PathTokens(proposal, node)) path.push_back(token);
  std::span<const TokenProbability> distribution;
  const Ranking ranking = RankRow(draft_, said, *context.sampling, *context.history,
                                  {.root = context.tokens.size() - 1 - drafted,
                                   .path = path,
                                   .children = WidthOf(context),
                                   .seed = context.sampling->seed},
                                  context.distributions == nullptr ? nullptr : &distribution);
  if (context.distributions != nullptr) context.distributions->SetListed(node, distribution);
  return ranking;
}

void ModelDrafter::Ask(std::span<const DraftContext> contexts, const Asked& asked) {
  const DraftTrunk& trunk = TrunkOf(contexts[asked.context]);
  draft_.said.Ask(asked.first, asked.depth, trunk.last_token(),
                  PathTokens(trunk.tree.proposal(), asked.node));
  asked_.push_back(asked);
}

void ModelDrafter::TakeAnswers(std::span<DraftContext> contexts) {
  draft_.said.Answer();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const DraftContext& context = contexts[asked_[i].context];
    DraftTrunk& trunk = TrunkOf(context);
    const int node = asked_[i].node;
    const Ranking ranking =
        Rank(context, asked_[i].context, trunk.tree.proposal(), node, draft_.said.At(i));
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
    DraftTrunk& trunk = TrunkOf(contexts[i]);
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
      const DraftTrunk& trunk = TrunkOf(contexts[drafting_[i]]);
      if (depth >= trunk.depths(draft_)) continue;
      for (const int node : WantedAt(trunk.tree, trunk.shape, depth)) {
        Ask(contexts, {.context = drafting_[i], .node = node, .first = firsts_[i], .depth = depth});
      }
    }
  }
}

void ModelDrafter::TakeGuessedRows(std::span<DraftContext> contexts, Logits logits) {
  std::int64_t first = 0;
  for (const int i : drafting_) {
    DraftTrunk& trunk = TrunkOf(contexts[i]);
    const Proposal& chain = trunk.tree.proposal();
    const int rows = nodes_[i].size();
    int right = 0;
    for (int row = 0;; ++row) {
      const int node = nodes_[i][row];
      const SaidRow said{.logits = logits.Row(first + row, model_->config().vocabulary),
                         .confidence = {}};
      trunk.TakeRanking(node, Rank(contexts[i], i, chain, node, said));
      // The rows behind a wrong guess say nothing of this chain.
      if (row + 1 == rows || chain.size() == node) break;
      if (chain.tokens[node] != guesses_[i].tokens[row]) break;
      ++right;
    }
    if (rows > 1) worth_.ObserveAnswer(right, /*wrong=*/right + 1 < rows);
    first += rows;
  }
}

std::unique_ptr<Drafter> MakeModelDrafter(const DrafterParts& parts) {
  return MakeUsual(DrafterId::kModel, parts);
}

std::unique_ptr<Drafter> MakeModel2Drafter(const DrafterParts& parts) {
  return MakeUsual(DrafterId::kModel2, parts);
}

std::unique_ptr<Drafter> MakeModel3Drafter(const DrafterParts& parts) {
  return MakeUsual(DrafterId::kModel3, parts);
}

}  // namespace foretoken
