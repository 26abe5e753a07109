#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/draft/model/chance_table.h"
#include "core/draft/model/draft_kv.h"
#include "core/draft/model/draft_tree.h"
#include "core/draft/model/draw.h"
#include "core/draft/model/pending_features.h"
#include "core/draft/model/said_rows.h"
#include "core/kv/tree_kv.h"
#include "core/model/model.h"
#include "core/sampling/sampler.h"
#include "core/speculation/outcome_predictor.h"

namespace foretoken {

/// What rows of a draft that reads features have left: the features of the rows behind them, until
/// the target's are there. By a number that the owner gives a row. Of other drafts empty.
class LeftStates {
 public:
  LeftStates() = default;
  LeftStates(int hidden, int rows) : hidden_(hidden), states_(hidden_ * rows) {}

  bool there() const { return hidden_ > 0; }
  /// [hidden]; null where there is nothing.
  const float* Of(int row) const { return there() ? states_.data() + hidden_ * row : nullptr; }
  void Keep(int row, const float* state) {
    if (there()) std::copy_n(state, hidden_, states_.data() + hidden_ * row);
  }

 private:
  std::size_t hidden_ = 0;
  std::vector<float> states_;  // [rows, hidden]
};

/// A draft model with its KV: what SD's drafter and SSD's speculator share. Borrows the model.
/// Belongs to one thread.
struct DraftModel {
  static constexpr std::int64_t kMaskSteps = 1 << 18;  ///< As ConstraintCursor counts.
  /// Rows of a sequence's committed tokens in a pass, at most: its KV has room for so many.
  static constexpr int kReadingRows = 256;
  /// Tokens of a text that has room from the start, like a sequence's first block list.
  static constexpr std::size_t kFirstCapacity = 4096;

  /// Room for `max_sequences` of `max_context` tokens and a proposal each, plus `scratch` slots per
  /// sequence.
  DraftModel(Model* draft_model, int max_sequences, int context, int scratch);
  /// Some of the target's layers, which reads the target's keys and values of sequences of
  /// `max_context` tokens: each is shown to `kv` before its tree grows.
  DraftModel(Model* draft_model, int context);

  Model* model;
  std::int32_t max_context;  ///< At most the model's own limit.
  DraftKv kv;
  Sampler sampler;
  std::int64_t mask_steps_left = 0;
  DraftDraw draw;
  ForwardBatch batch;
  SaidRows said;  ///< The results of the latest pass over `batch`.

  /// Work on grammars' masks from here on, until this is called again: a mask may take far longer
  /// than a pass. Where it is not enough, drafting ends.
  void AllowMaskWork() { mask_steps_left = kMaskSteps; }
  /// Whether the mask after `path` is there within what is left of it.
  bool PrepareMask(const TokenHistory& history, std::span<const Token> path);

  bool reads_features() const { return model->config().feature.there(); }
  /// Whether its rows leave features, which stand in for those that the target has not kept yet.
  bool leaves_states() const { return model->config().feature.in_rows() && positions() == 1; }
  /// Whether features are what its rows attend to, or what its heads read. Committed positions then
  /// have rows of features alone, the last one, which has none yet, no row; and passes that draft
  /// have rows of tokens, the last committed one first, of which nothing is kept.
  bool reads_context() const { return reads_features() && !model->config().feature.in_rows(); }
  /// Tokens of a sequence's beginning that have no row. Where rows begin with features
  /// (FeatureSpec) a row has that of the position before its token, so sequences begin with the
  /// target's second token: position p of the draft is the target's token p + 1 and the feature of
  /// position p.
  int tokens_without_row() const { return model->config().feature.in_rows() ? 1 : 0; }

  /// Positions whose tokens a pass says, at most (ParallelSpec). Where these are several, the
  /// drafting row of a root gives as many rows of logits: row d for all nodes at depth d, to which
  /// their paths may add (ModelConfig::markov), so that a tree grows through its levels by one
  /// pass.
  int positions() const { return model->config().parallel.positions; }
  /// Whether a row's path from the root tells what it computes (FeatureSpec::sequential): all rows
  /// then read the state that the root's row has left, so that none waits for another's pass.
  bool reads_paths() const { return model->config().feature.sequential(); }
  /// Whether it says something behind a node so many levels below the root at this position.
  bool Reaches(std::int32_t root, int depth) const {
    return root + depth < max_context && (!reads_paths() || depth < model->config().feature.heads);
  }

  /// For the rows of one sequence in `batch`.
  RowPlacer PlacerFor(const SequenceKv& sequence) {
    return {sequence, &batch.block_tables, &batch.tail_slots};
  }

  OutcomePredictor outcomes = OutcomePredictor::OfAllSequences();  ///< Taught by every trunk.
  /// The chances of candidates in trees that grow best first, at T = 0 and above, taught by every
  /// trunk: where the target takes its likeliest token the draft is right more often than its odds
  /// say, else about as often.
  ChanceTable greedy_chances{2};
  ChanceTable noisy_chances{1};
};

/// Nodes of one tree.
using TreeNodes = StaticVector<std::int8_t, kMaxProposal + 1>;

/// One sequence as a draft model sees it: the committed tokens, the tree of proposed tokens below
/// them (drafted here or elsewhere), what the draft says after each of its nodes, and what the
/// sequence's outcomes have taught.
///
/// Where the draft reads features, the row of a committed token reads what the target has kept, and
/// the row of a node, where the target has not run yet, reads the state that the draft's own row of
/// the node's parent has left. Once tokens are committed, their rows are therefore computed again,
/// with the target's features.
class DraftTrunk {
 public:
  /// Before the first tokens: the predictor begins with what the draft's other sequences have
  /// taught. Not if proposals are drawn: what is prepared for them must not depend on what was
  /// drawn for others, which may have the same noise.
  void Begin(const DraftModel& draft, bool draws) {
    draws_ = draws;
    if (!draws) predictor = draft.outcomes.ForSequence();
    parallel_ = draft.model->config().parallel;
    context_ = draft.reads_context();
    feature_ = draft.model->config().feature;
    confident_ = draft.model->config().markov.confidence;
    if (!draft.reads_features()) return;
    const ModelConfig& config = draft.model->config();
    features = PendingFeatures(config.feature.tap_width());
    tokens_without_row_ = draft.tokens_without_row();
    if (draft.leaves_states()) left = LeftStates(config.hidden, kMaxProposal + 1);
  }
  /// `tokens` follow the committed ones. Those that walk down the tree teach the predictor, and the
  /// draft's, how far it was right, and keep its KV, unless that was made of features that were not
  /// there yet. The tree is then only the new root.
  void Commit(std::span<const Token> tokens, DraftModel& draft);
  /// Before Commit: takes back those committed tokens that `tokens`, of which there is one more at
  /// least, do not begin with. Those below `settled` are known to be the same. Only where rows are
  /// of tokens alone.
  void Rewind(std::span<const Token> tokens, std::int32_t settled, DraftModel& draft);

  /// The tree grows anew from the root by this plan: a tree best first, but where proposals are
  /// drawn along a shape. `draft` outlives it.
  void Plan(int width, int depth, int max_nodes, float temperature, DraftModel& draft);

  std::int32_t committed() const { return static_cast<std::int32_t>(committed_.size()); }
  /// The position of node 0: the last committed token.
  std::int32_t root() const { return committed() - 1; }
  /// Its place in the target's sequence.
  std::int32_t root_token() const { return root() + tokens_without_row_; }

  /// Makes room for the rows of `rows` committed tokens that are not computed, as far as there are
  /// so many, and any tree behind them. False when the pool has none.
  [[nodiscard]] bool Reserve(int rows, DraftModel& draft) {
    return draft.kv.Reserve(std::min(committed(), computed() + rows) + most_nodes_, &kv);
  }
  /// Committed positions below it have their KV in place.
  std::int32_t computed() const { return kv.committed; }
  /// Committed positions below it have rows, and their KV at some time.
  std::int32_t readable() const { return committed() - (context_ ? 1 : 0); }
  /// Whether a pass is wanted over rows that are not computed, or to rank the root.
  bool reads() const { return computed() < readable() || (context_ && !tree.ranked(0)); }
  KvTree kv_tree() const { return {root(), tree.proposal().parents}; }
  /// Adds rows for the committed positions from computed() on, at most `limit` of them, to `batch`;
  /// the root's wants logits. Returns the position behind the last. After Reserve, like all rows.
  std::int32_t AppendCommittedRows(int limit, RowPlacer* placer, ForwardBatch* batch) const;
  /// Before AppendDraftRows: where it would have more than kReadingRows rows of committed tokens to
  /// add, adds so many of them to the draft's batch. Returns whether it did; TakeRead follows the
  /// pass.
  bool AppendReadingRows(DraftModel& draft);
  void TakeRead() { CommitRows(computed() + DraftModel::kReadingRows, &kv); }
  /// How many depths of a tree by `shape` a pass says whose root is at `root`: 1 unless the draft
  /// says several positions. No more than it has positions for.
  int DepthsBehind(std::int32_t root, const DraftModel& draft) const {
    if (!parallel_.there()) return 1;
    return std::clamp(shape.levels(), 1, std::max(1, draft.max_context - root));
  }
  int depths(const DraftModel& draft) const { return DepthsBehind(root(), draft); }
  /// Where the draft says several positions in a pass: behind the rows of committed tokens adds
  /// those that say `depths` of them. They lie where nodes do, and are never kept.
  void AppendMaskRows(int depths, RowPlacer* placer, ForwardBatch* batch) const;
  /// Whether the draft writes no keys and values for rows of tokens, so that none need be taken
  /// back (DraftModel::reads_context).
  bool keeps_no_rows() const { return context_; }
  /// The feature of all rows of a block that begins at the root: where heads read it, what the
  /// target has kept of the position before the root.
  RowFeature FeatureOfBlock() const {
    const bool read = feature_.head_for_each_row() && root() > 0;
    return {.kept = read ? features.At(root() - 1) : nullptr};
  }
  /// The place of a block's row: heads are at the position whose feature they read.
  RowPlace PlaceOfBlock(const RowPlace& usual, RowPlacer* placer) const {
    return feature_.head_for_each_row() ? placer->Committed(std::max(0, root() - 1)) : usual;
  }
  /// The last committed token: node 0.
  Token last_token() const { return committed_.back(); }
  /// Adds the row of a node below the root, whose ancestors have their KV or come before it in the
  /// batch.
  void AppendNodeRow(int node, RowPlacer* placer, ForwardBatch* batch) const;
  /// DraftModel::reads_paths
  bool reads_paths() const { return feature_.sequential(); }
  /// What the rows of a node's children read.
  RowFeature FeatureBehind(int node) const { return {.left = left.Of(reads_paths() ? 0 : node)}; }
  /// Where paths are read, that of a row: `tokens` lead from below the root to its own, and are not
  /// empty.
  RowPath PathOf(std::span<const Token> tokens, ForwardBatch* batch) const;

  /// Before AppendDraftRows: of a tree that grows best first, keeps the likeliest nodes.
  void KeepBest(DraftModel& draft);
  /// Adds to the draft's batch the rows of all nodes that children are wanted of, after those
  /// of committed tokens without KV: one pass of drafting; `nodes` gets the nodes in the order of
  /// the wanted logits. False when there are none, be it for want of memory or context.
  bool AppendDraftRows(DraftModel& draft, TreeNodes* nodes) {
    return AppendDraftRows(draft, /*guesses=*/{}, nodes);
  }
  /// The same of a chain; behind its last node come the rows of `guesses`, a chain below it, as if
  /// they were its nodes. Their rankings are taken as far as they become nodes.
  bool AppendDraftRows(DraftModel& draft, const Proposal& guesses, TreeNodes* nodes);
  /// Takes what the draft says after `node`, whose row has been computed. Returns how many children
  /// that has given it.
  int TakeRanking(int node, const Ranking& ranking);
  /// The same where the root's row has said it, of a node below the root.
  int TakeRootsRanking(int node, const Ranking& ranking);
  /// Before `node` of a tree takes its ranking: where the draft says how likely the first token
  /// there is to be accepted, tells the tree.
  void TakeConfidence(int node, const Ranking& ranking, DraftTree* grown) const;
  /// The tree is proposed. Where its root's pass has said it, what is said after its nodes is to
  /// come: with rows of their own, or at the depths of another such pass.
  void FinishTree() {
    if (!parallel_.there()) return;
    const Proposal proposed = tree.proposal();
    tree.Assign(proposed);
    if (!context_) tree.SetRow(0, 0);
  }
  /// Keeps the state that the row of `node` has computed. Does nothing unless the draft reads
  /// features.
  void TakeState(int node, const float* state) { left.Keep(node, state); }

  SequenceKv kv;
  DraftTree tree;  ///< A node's row is the node's own number.
  /// The shape of trees that are sent while they grow, so that nothing can be taken back, and of
  /// `tree` where there is no `best_first`.
  TreeShape shape;
  std::optional<BestFirst> best_first;
  /// The rankings of ranked nodes.
  std::vector<Ranking> rankings = std::vector<Ranking>(kMaxProposal + 1);
  LeftStates left;  ///< The states that ranked nodes have left, where the draft reads features.
  /// The features of committed positions whose rows are not computed yet, where the draft reads
  /// features.
  PendingFeatures features;
  OutcomePredictor predictor;

 private:
  void Learn(int node, Token token, DraftModel& draft);
  void AppendRow(const Proposal& proposal, int node, RowPlacer* placer, ForwardBatch* batch) const;

  std::vector<Token> committed_;
  int tokens_without_row_ = 0;
  // The most nodes of a tree; in the target's KV, those of one by the plan.
  int most_nodes_ = kMaxProposal;
  bool draws_ = false;
  bool context_ = false;    // DraftModel::reads_context
  bool confident_ = false;  // MarkovSpec::confidence
  FeatureSpec feature_;
  ParallelSpec parallel_;
};

/// The nodes at a depth of `tree` that `shape` wants children of.
TreeNodes WantedAt(const DraftTree& tree, const TreeShape& shape, int depth);

/// What the draft says after committed tokens and the request's path, from their row: its best
/// tokens. Of a draft that says how likely its first token is to be accepted, these are that one's
/// odds. Where there is a `distribution`, for rejection verification: children drawn, then
/// candidates for the bonus token; `distribution` gets what was drawn from, valid until the next
/// row is ranked. Nothing where that takes more work on a mask than is allowed.
Ranking RankRow(DraftModel& draft, const SaidRow& said, const SamplingParams& sampling,
                const TokenHistory& history, const RankRequest& request,
                std::span<const TokenProbability>* distribution = nullptr);

}  // namespace foretoken
