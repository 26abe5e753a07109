#include "core/ssd/speculated_sequence.h"

#include <algorithm>
#include <array>

#include "base/numbers/integers.h"
#include "core/prediction/branch_rows.h"
#include "core/ssd/outcome_record.h"

namespace foretoken {

int ScratchSlots(const ConfigureMessage& config, const ModelConfig& draft) {
  // Rows of a block leave nothing behind their pass, so that the slots of one pass are enough.
  const int block = draft.parallel.block;
  return block > 0 ? kBranchRowsPerPass + block : config.scratch_slots();
}

SpeculatedSequence::SpeculatedSequence(const OpenMessage& open, const ConfigureMessage& config,
                                       const DraftModel& draft)
    : id(open.sequence),
      epoch(open.epoch),
      draws(open.draws),
      sampling(FromNumbers(open.sampling)),
      history(draft.model->config().vocabulary,
              std::min(sampling.penalty_window, config.max_context)),
      announced_(open),
      plan_(open.plan),
      next_plan_(open.plan),
      max_branches_(config.max_cache_budget),
      scratch_capacity_(ScratchSlots(config, draft.model->config())),
      scratch_rankings_(scratch_capacity_) {
  opening_.reserve(announced_.tokens);
  branches.reserve(max_branches_);
  scratch.blocks.reserve(BlocksFor(scratch_capacity_));
  trunk.Begin(draft, draws);
  if (draft.leaves_states()) {
    scratch_left_ = LeftStates(draft.model->config().hidden, scratch_capacity_);
  }
}

void SpeculatedSequence::AddTokens(std::span<const Token> tokens, DraftModel& draft) {
  opening_.insert(opening_.end(), tokens.begin(), tokens.end());
  if (static_cast<std::int32_t>(opening_.size()) < announced_.tokens) return;
  history.AddPrompt(std::span<const Token>(opening_).first(announced_.prompt_tokens));
  for (std::size_t i = announced_.prompt_tokens; i < opening_.size(); ++i)
    history.AddOutput(opening_[i]);
  trunk.Commit(std::span<const Token>(opening_).subspan(draft.tokens_without_row()), draft);
  trunk.tree.Assign({});
  trunk.Plan(plan_.tree_width, plan_.lookahead, plan_.nodes(), sampling.temperature, draft);
  EstimateReached();
}

void SpeculatedSequence::AddBiases(std::span<const OpenBiasMessage::Bias> biases) {
  for (const auto& bias : biases) sampling.logit_bias.emplace_back(bias.token, bias.value);
}

void SpeculatedSequence::AddGrammar(std::span<const char> text, const CompileConstraint& compile) {
  grammar_.append(text.begin(), text.end());
  if (std::ssize(grammar_) != announced_.grammar_bytes || !compile) return;
  auto constraint = compile(grammar_);
  // Without it the draft proposes what the target will not take: slower, not wrong.
  if (constraint.ok()) history.Constrain(**constraint, announced_.drops_space);
}

bool SpeculatedSequence::complete() const {
  return trunk.root_token() + 1 >= announced_.tokens &&
         std::ssize(grammar_) == announced_.grammar_bytes &&
         std::ssize(sampling.logit_bias) == announced_.biases;
}

bool SpeculatedSequence::IsStop(Token token) const {
  return std::ranges::find(announced_.stop_tokens, token) != announced_.stop_tokens.end();
}

void SpeculatedSequence::Advance(const OutcomeMessage& outcome, DraftModel& draft,
                                 RetrievalRates* rates) {
  const auto committed = CommittedOf(outcome);
  const Outcome key{outcome.node, committed.back()};
  const auto hit = std::find_if(branches.begin(), branches.end(),
                                [&](const Branch& branch) { return branch.outcome == key; });
  const Proposal next = NextOf(outcome, hit == branches.end() ? nullptr : &hit->tree.proposal());
  ObserveRetrieved(key, rates);
  for (const Token token : committed) history.AddOutput(token);
  trunk.Commit(committed, draft);
  // A just-in-time proposal grows; any other is what it is.
  jit = outcome.wants_jit;
  if (!jit) trunk.tree.Assign(next);
  // What a drawn branch says after its root was drawn for another proposal: a just-in-time one
  // draws anew.
  // So does a pass that says all of its positions; and of blocks nothing is kept.
  // And what heads said from the state before is poorer than what they say from this round's.
  const bool anew =
      (jit && (draws || draft.positions() > 1)) || draft.reads_context() || draft.reads_paths();
  const bool usable = hit != branches.end() && hit->tree.ranked(0) && !anew;
  if (usable && (draft.reads_features() || trunk.computed() == trunk.root())) {
    Promote(*hit, next, draft);
  }
  branches.clear();
  retrieved_.Clear();
  scratch_used_ = 0;
  expanded_ = 0;
  plan_ = next_plan_;
  after_fallback_ = outcome.wants_jit || outcome.source != ProposalSource::kCache;
  epoch = outcome.epoch;
  trunk.Plan(plan_.tree_width, plan_.lookahead, plan_.nodes(), sampling.temperature, draft);
  if (jit && trunk.tree.ranked(0)) TakeRow({}, 0, Ranking(trunk.rankings[0]));
  EstimateReached();
}

void SpeculatedSequence::ObserveRetrieved(Outcome outcome, RetrievalRates* rates) const {
  const Proposal& proposal = trunk.tree.proposal();
  if (outcome.node > proposal.size()) return;
  const bool leaf = proposal.FirstChild(outcome.node) == 0;
  retrieved_.Observe(outcome.node, leaf, outcome.bonus, rates);
  for (int node = outcome.node; node > 0; node = proposal.parents[node - 1]) {
    retrieved_.Observe(proposal.parents[node - 1], false, proposal.tokens[node - 1], rates);
  }
}

void SpeculatedSequence::TakeRetrieved(const OutcomeList& outcomes) {
  retrieved_.Assign(outcomes);
  std::uint64_t named = 0;  // A bit for each node.
  for (const RetrievedOutcome& retrieved : outcomes) {
    const int node = retrieved.outcome.node;
    if (node >= 0 && node <= kMaxProposal) named |= std::uint64_t{1} << node;
  }
  expanded_ &= ~named;
  std::erase_if(branches, [named](const Branch& branch) {
    return (named >> branch.outcome.node & 1) != 0 && !branch.tree.ranked(0);
  });
}

bool SpeculatedSequence::AppendJitRows(DraftModel& draft,
                                       StaticVector<std::int8_t, kMaxProposal + 1>* nodes) {
  trunk.KeepBest(draft);
  CloseStops(&trunk.tree, trunk.tree.proposal().size());
  return trunk.AppendDraftRows(draft, nodes);
}

void SpeculatedSequence::FinishJit() {
  jit = false;
  trunk.FinishTree();
  EstimateReached();
}

void SpeculatedSequence::Promote(const Branch& branch, const Proposal& proposal,
                                 DraftModel& draft) {
  if (!trunk.Reserve(trunk.committed() - trunk.computed(), draft)) return;
  StaticVector<PromotedRow, kMaxProposal + 1> promoted;
  // Which node of the branch each node of the proposal is: the engine may have taken less of it.
  std::array<int, kMaxProposal + 1> origin{};
  for (int node = 0; node <= proposal.size(); ++node) {
    if (node > 0) {
      const int parent = origin[proposal.parents[node - 1]];
      const int child =
          parent < 0 ? 0 : branch.tree.proposal().ChildWith(parent, proposal.tokens[node - 1]);
      origin[node] = child == 0 ? -1 : child;
    }
    if (origin[node] < 0 || !branch.tree.has_own_row(origin[node])) continue;
    if (node == 0 && draft.reads_features()) continue;
    const int row = branch.tree.row(origin[node]);
    promoted.push_back({static_cast<std::int16_t>(row), static_cast<std::int16_t>(node)});
    trunk.rankings[node] = scratch_rankings_[row];
    trunk.TakeState(node, scratch_left_.Of(row));
    trunk.tree.SetRow(node, node);
  }
  MoveBranch(trunk.root(), promoted, scratch, draft.kv.memory(), &trunk.kv);
  if (!draft.reads_features()) CommitRows(trunk.root() + 1, &trunk.kv);
}

void SpeculatedSequence::EstimateReached() {
  const Proposal& proposal = trunk.tree.proposal();
  std::array<int, kMaxProposal + 1> children{};
  reached_[0] = 1;
  for (int i = 0; i < proposal.size(); ++i) {
    const int parent = proposal.parents[i];
    reached_[i + 1] =
        reached_[parent] * trunk.predictor.Probability(/*leaf=*/false, children[parent]++);
  }
}

int SpeculatedSequence::DepthsAtRoot(const DraftModel& draft) const {
  if (jit || !draft.reads_context()) return jit ? trunk.depths(draft) : 1;
  // As many depths as the proposal under verification has, and one more: its ends have candidates
  // too.
  int deepest = 0;
  const Proposal& proposal = trunk.tree.proposal();
  for (int node = 1; node <= proposal.size(); ++node) {
    deepest = std::max(deepest, proposal.Depth(node));
  }
  return std::min(deepest + 1, draft.positions());
}

int SpeculatedSequence::DepthsBelow(int node, const DraftModel& draft) const {
  const int known = trunk.tree.proposal().Depth(node) + 1;
  const int depths = trunk.DepthsBehind(trunk.root() + known, draft);
  return draft.reads_context() ? std::min(depths, draft.positions() - known) : depths;
}

void SpeculatedSequence::Expand(const DraftModel& draft, const RetrievalRates& rates) {
  // While a just-in-time proposal grows there is nothing yet to have outcomes.
  if (jit) return;
  for (int node = 0; node < trunk.tree.nodes(); ++node) {
    const std::uint64_t bit = std::uint64_t{1} << node;
    if ((expanded_ & bit) != 0 || !trunk.tree.ranked(node)) continue;
    expanded_ |= bit;
    // The branch's first row sits one past the node.
    if (!draft.Reaches(trunk.root(), trunk.tree.proposal().Depth(node) + 1)) continue;
    if (DepthsBelow(node, draft) < 1) continue;
    ExpandNode(node, rates);
  }
}

void SpeculatedSequence::ExpandNode(int node, const RetrievalRates& rates) {
  const Proposal& proposal = trunk.tree.proposal();
  const bool leaf = proposal.FirstChild(node) == 0;
  const int fanout = FanoutAt(this->fanout(), proposal, node);
  const int children = proposal.Children(node);
  StaticVector<Token, kMaxFanout> bonuses;
  for (const RankedToken& bonus : trunk.rankings[node]) {
    if (std::ssize(bonuses) == fanout) break;
    if (proposal.ChildWith(node, bonus.token) == 0) bonuses.push_back(bonus.token);
  }
  // What retrieval expects beside the draft's tokens takes the places of the draft's last ones
  // while it is likelier to be right.
  const auto retrieved = retrieved_.Beside(node, leaf, bonuses, rates);
  int own = bonuses.size();
  int taken = 0;
  const auto chance = [&](int i) { return trunk.predictor.Probability(leaf, children + i); };
  while (taken < std::ssize(retrieved) && taken < fanout) {
    const bool free = own + taken < fanout;
    if (!free && retrieved[taken].chance <= chance(own - 1)) break;
    if (!free) --own;
    ++taken;
  }
  const auto add = [&](Token bonus, double probability, bool from_retrieval) {
    // A stop token ends the sequence: there is nothing to prepare behind it. But where proposals
    // are drawn, how much is prepared for others must not tell what the noise is here.
    if (!draws && IsStop(bonus)) return;
    AddBranch({.outcome = {node, bonus},
               .weight = reached_[node] * probability,
               .retrieved = from_retrieval,
               .tree = {}});
  };
  for (int i = 0; i < own; ++i) add(bonuses[i], chance(i), false);
  for (int i = 0; i < taken; ++i) add(retrieved[i].token, retrieved[i].chance, true);
}

void SpeculatedSequence::AddBranch(const Branch& branch) {
  // At a node that is expanded again, those that work has gone into are there already.
  const bool there = std::ranges::any_of(
      branches, [&branch](const Branch& other) { return other.outcome == branch.outcome; });
  if (there) return;
  if (branches.size() < max_branches_) {
    branches.push_back(branch);
    return;
  }
  // Full: in place of the least likely one, unless work has gone into that.
  const auto weakest =
      std::min_element(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
        return std::pair(a.tree.ranked(0), a.weight) < std::pair(b.tree.ranked(0), b.weight);
      });
  if (weakest->tree.ranked(0) || weakest->weight >= branch.weight) return;
  *weakest = branch;
}

void SpeculatedSequence::AppendWanted(const DraftModel& draft,
                                      std::vector<WantedRow>* wanted) const {
  if (jit || !trunk.tree.ranked(0)) return;
  const Proposal& proposal = trunk.tree.proposal();
  // A bit for each node that has its KV or will have it by this pass; where the draft reads
  // features, that has left its state.
  std::uint64_t present = 1;
  for (int node = 1; !draft.reads_context() && node < trunk.tree.nodes(); ++node) {
    if ((present >> proposal.parents[node - 1] & 1) == 0) continue;
    if (!trunk.tree.ranked(node)) {
      if (!draft.Reaches(trunk.root(), proposal.Depth(node))) continue;
      if (IsStop(proposal.tokens[node - 1])) continue;
      wanted->push_back({.branch = -1, .node = node, .value = reached_[node] * kHitValue});
      if (scratch_left_.there() && !draft.reads_paths()) continue;
    }
    present |= std::uint64_t{1} << node;
  }
  if (scratch_used_ == scratch_capacity_) return;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    const Branch& branch = branches[b];
    const int known = proposal.Depth(branch.outcome.node) + 1;
    const Proposal& prepared = branch.tree.proposal();
    // Where a pass says several positions, one says all of the branch's nodes, or none.
    const int rows_of = draft.positions() > 1 ? 1 : branch.tree.nodes();
    for (int node = 0; node < rows_of; ++node) {
      if (!branch.tree.Wants(node, trunk.shape)) continue;
      if (!draft.Reaches(trunk.root(), known + prepared.Depth(node))) continue;
      double useful = node == 0 ? kHitValue : branch.tree.Reached(node);
      const int depths = DepthsBelow(branch.outcome.node, draft);
      if (depths > 1) useful += trunk.shape.ExpectedInner(depths);
      wanted->push_back({.branch = Int(b),
                         .node = node,
                         .value = branch.weight * useful,
                         .depths = depths,
                         .rows = draft.model->config().parallel.rows(depths)});
    }
  }
}

bool SpeculatedSequence::AppendRow(DraftModel& draft, const WantedRow& wanted, int slot,
                                   RowPlacer* placer) {
  if (wanted.branch < 0) {
    trunk.AppendNodeRow(wanted.node, placer, &draft.batch);
    return true;
  }
  const int end = slot + wanted.rows;
  if (end > scratch_capacity_ || !draft.kv.Reserve(end, &scratch)) return false;
  if (draft.reads_context()) {
    AppendBlock(draft, wanted, slot, placer);
    return true;
  }
  const Branch& branch = branches[wanted.branch];
  const Proposal& prepared = branch.tree.proposal();
  StaticVector<std::int16_t, kMaxProposal + 1> rows;
  if (wanted.node != 0) rows.push_back(static_cast<std::int16_t>(branch.tree.row(0)));
  for (const std::int8_t node : PathTo(prepared, wanted.node)) {
    const int row = node == wanted.node ? slot : branch.tree.row(node);
    rows.push_back(static_cast<std::int16_t>(row));
  }
  if (wanted.node == 0) rows.push_back(static_cast<std::int16_t>(slot));
  draft.batch.rows.push_back(
      {.token = wanted.node == 0 ? branch.outcome.bonus : prepared.tokens[wanted.node - 1],
       .place = placer->Branch(trunk.kv_tree(), branch.outcome.node, scratch, rows),
       .wants_logits = true,
       .wants_state = scratch_left_.there(),
       .feature = FeatureOf(branch, wanted.node),
       .path = trunk.PathOf(PathOf(wanted), &draft.batch)});
  while (++slot < end) {
    rows.push_back(static_cast<std::int16_t>(slot));
    draft.batch.rows.push_back(
        {.token = draft.model->config().parallel.mask_token,
         .place = placer->Branch(trunk.kv_tree(), branch.outcome.node, scratch, rows)});
  }
  return true;
}

void SpeculatedSequence::AppendBlock(DraftModel& draft, const WantedRow& wanted, int slot,
                                     RowPlacer* placer) {
  const ParallelSpec& parallel = draft.model->config().parallel;
  StaticVector<Token, kMaxProposal + 2> known;
  known.push_back(trunk.last_token());
  for (const Token token : PathOf(wanted)) known.push_back(token);
  const int last = std::ssize(known) - 1;  // The bonus token, the branch's root.
  StaticVector<std::int16_t, kMaxProposal + 1> rows;
  for (int row = 0; row < wanted.rows; ++row) {
    rows.push_back(static_cast<std::int16_t>(slot + row));
    draft.batch.rows.push_back(
        {.token = row <= last ? known[row] : parallel.mask_token,
         .place = trunk.PlaceOfBlock(placer->Block(trunk.root(), scratch, rows), placer),
         .wants_logits = parallel.Says(row, wanted.depths, last),
         .feature = trunk.FeatureOfBlock(),
         .block_left = wanted.rows - 1 - row});
  }
}

StaticVector<Token, 2 * kMaxProposal + 1> SpeculatedSequence::PathOf(
    const WantedRow& wanted) const {
  StaticVector<Token, 2 * kMaxProposal + 1> path;
  const auto add = [&](std::span<const Token> tokens) {
    for (const Token token : tokens) path.push_back(token);
  };
  if (wanted.branch < 0) {
    add(PathTokens(trunk.tree.proposal(), wanted.node));
    return path;
  }
  const Branch& branch = branches[wanted.branch];
  add(PathTokens(trunk.tree.proposal(), branch.outcome.node));
  path.push_back(branch.outcome.bonus);
  add(PathTokens(branch.tree.proposal(), wanted.node));
  return path;
}

RankRequest SpeculatedSequence::RequestFor(const WantedRow& wanted,
                                           std::span<const Token> path) const {
  const bool prepared = wanted.branch >= 0;
  const bool grows = prepared || jit;
  const Proposal& tree = prepared ? branches[wanted.branch].tree.proposal() : trunk.tree.proposal();
  const FanoutShape& fanout = prepared ? plan_.primary : plan_.after_fallback;
  const int depth = std::min(tree.Depth(wanted.node), plan_.lookahead);
  const int children = grows ? plan_.tree_width : 0;
  // There may be children already: as many bonus tokens beside them.
  const int most_children = std::max(plan_.tree_width, prepared ? 0 : tree.Children(wanted.node));
  const int bonuses = std::max(plan_.primary.Most(depth), plan_.after_fallback.Most(depth));
  return {.root = static_cast<std::uint64_t>(trunk.root_token()),
          .path = path,
          .children = children,
          .candidates = bonuses + most_children - children,
          .seed = sampling.seed,
          .fanout = fanout.at[depth],
          .saguaro_c = plan_.saguaro_c,
          .order = plan_.cache_order};
}

RowFeature SpeculatedSequence::FeatureOf(const Branch& branch, int node) const {
  if (node == 0 || trunk.reads_paths()) return trunk.FeatureBehind(branch.outcome.node);
  return {.left = scratch_left_.Of(branch.tree.row(branch.tree.proposal().parents[node - 1]))};
}

void SpeculatedSequence::TakeState(const WantedRow& wanted, int slot, const float* state) {
  if (wanted.branch < 0) {
    trunk.TakeState(wanted.node, state);
  } else {
    scratch_left_.Keep(slot, state);
  }
}

void SpeculatedSequence::CloseStops(DraftTree* tree, int added) const {
  for (int node = tree->nodes() - added; node < tree->nodes(); ++node) {
    if (IsStop(tree->proposal().tokens[node - 1])) tree->Close(node);
  }
}

int SpeculatedSequence::TakeRow(const WantedRow& wanted, int slot, const Ranking& ranking) {
  DraftTree* tree = &trunk.tree;
  int added = 0;
  if (wanted.branch < 0) {
    added = trunk.TakeRanking(wanted.node, ranking);
  } else {
    tree = &branches[wanted.branch].tree;
    if (!trunk.keeps_no_rows()) scratch_used_ = std::max(scratch_used_, slot + wanted.rows);
    scratch_rankings_[slot] = ranking;
    trunk.TakeConfidence(wanted.node, ranking, tree);
    added = tree->Grow(wanted.node, slot, trunk.shape, ranking);
  }
  CloseStops(tree, added);
  return added;
}

int SpeculatedSequence::TakeRootsRanking(const WantedRow& node, const Ranking& ranking) {
  DraftTree* tree = &trunk.tree;
  int added = 0;
  if (node.branch < 0) {
    added = trunk.TakeRootsRanking(node.node, ranking);
  } else {
    tree = &branches[node.branch].tree;
    trunk.TakeConfidence(node.node, ranking, tree);
    added = tree->Grow(node.node, tree->row(0), trunk.shape, ranking);
  }
  CloseStops(tree, added);
  return added;
}

}  // namespace foretoken
