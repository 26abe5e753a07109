#include "draft/model/draft_model.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace {

// A mask has so many steps, whatever those before it took.
constexpr std::int64_t kLeastMaskSteps = 1 << 12;
constexpr std::size_t kFirstCapacity = 4096;  // Tokens; like a sequence's first block list.

// Rows of branches lie in scratch blocks of their own, whose recent parts are referred to as well.
KvRoom DraftRoom(int window, int sequences, int context, int scratch) {
  const std::int64_t scratch_blocks = sequences * BlocksFor(scratch);
  const KvDemand demand{
      .sequences = sequences,
      .rows = std::int64_t{sequences} * DraftModel::kReadingRows + scratch_blocks * kBlockSize,
      .nodes = kMaxProposal};
  return RoomFor(sequences * BlocksFor(context + kMaxProposal) + scratch_blocks, window, demand,
                 /*prefix_cache=*/false);
}

// The place of the target's `token` among the candidates after a node (OutcomePredictor): its
// children, then the rest of the ranking; -1 where it is not one of them.
int CandidateNumber(const Proposal& proposal, int node, std::span<const Token> ranking,
                    Token token) {
  int number = 0;
  for (int i = node; i < proposal.size(); ++i) {
    if (proposal.parents[i] != node) continue;
    if (proposal.tokens[i] == token) return number;
    ++number;
  }
  for (const Token candidate : ranking) {
    if (candidate == token) return number;
    if (proposal.ChildWith(node, candidate) == 0) ++number;
  }
  return -1;
}

}  // namespace

DraftModel::DraftModel(Model* draft_model, int max_sequences, int context, int scratch)
    : model(draft_model),
      max_context(std::min(context, draft_model->config().max_positions)),
      pool(DraftRoom(WindowOf(model->config()), max_sequences, max_context, scratch),
           /*prefix_cache=*/false),
      kv(AllocateKv(model->KvShapeFor(0), pool, &model->backend())),
      sampler(&model->backend(), model->config().vocabulary) {}

bool DraftModel::PrepareMask(const TokenHistory& history, std::span<const Token> path) {
  std::int64_t steps = std::max(mask_steps_left, kLeastMaskSteps);
  mask_steps_left -= steps;
  const bool ready = history.PrepareMask(path, &steps);
  mask_steps_left += steps;
  return ready;
}

Ranking RankRow(DraftModel& draft, Logits logits, const SamplingParams& sampling,
                const TokenHistory& history, const RankRequest& request,
                std::span<const TokenProbability>* law) {
  if (law != nullptr) *law = {};
  if (!draft.PrepareMask(history, request.path)) return {};
  if (law != nullptr) {
    const auto likeliest = draft.sampler.LikeliestTokens(logits.values, sampling, history,
                                                         request.path, kMaxLawTokens);
    *law = likeliest;
    return draft.draw.Draw(request, likeliest);
  }
  std::array<Candidate, kMaxRanking> best;
  const int count = std::min(request.children + request.candidates, kMaxRanking);
  const std::size_t found = draft.sampler.Rank(
      logits, sampling, history, request.path, request.root + 1 + request.path.size(),
      std::span(best).first(static_cast<std::size_t>(count)));
  Ranking ranking;
  for (std::size_t i = 0; i < found; ++i) ranking.push_back(best[i].token);
  return ranking;
}

void DraftTrunk::Learn(int node, Token token, DraftModel& draft) {
  const Proposal& proposal = tree.proposal();
  const bool leaf = proposal.FirstChild(node) == 0;
  const int candidate = CandidateNumber(proposal, node, rankings[node], token);
  predictor.Observe(leaf, candidate);
  draft.outcomes.Observe(leaf, candidate);
}

void DraftTrunk::Commit(std::span<const Token> tokens, DraftModel& draft) {
  if (committed_.capacity() == 0) committed_.reserve(kFirstCapacity);
  const std::int32_t old_root = root();
  StaticVector<std::int8_t, kMaxProposal> kept;
  int node = 0;
  bool ranked = tree.ranked(0);
  const bool computed = ranked;
  for (const Token token : tokens) {
    committed_.push_back(token);
    if (!ranked) continue;
    Learn(node, token, draft);
    node = tree.proposal().ChildWith(node, token);
    ranked = node != 0 && tree.ranked(node);
    const bool keeps = !draft.reads_features() && ranked && tree.has_own_row(node);
    if (keeps) kept.push_back(static_cast<std::int8_t>(node));
  }
  if (computed && !context_) CommitPath(old_root, kept, draft.memory(), &kv);
  features.DropBelow(kv.committed - 1);  // Heads read that of the last one again.
  tree.Clear();
}

std::int32_t DraftTrunk::AppendCommittedRows(int limit, RowPlacer* placer,
                                             ForwardBatch* batch) const {
  const std::int32_t end = std::min(readable(), computed() + limit);
  for (std::int32_t position = computed(); position < end; ++position) {
    batch->rows.push_back({.token = committed_[position],
                           .place = placer->Committed(position),
                           .wants_logits = position == root(),
                           .wants_state = left.there() && position == root(),
                           .feature = {.kept = features.At(position)}});
  }
  return end;
}

void DraftTrunk::AppendNodeRow(int node, RowPlacer* placer, ForwardBatch* batch) const {
  const Proposal& proposal = tree.proposal();
  batch->rows.push_back({.token = proposal.tokens[node - 1],
                         .place = placer->Node(kv_tree(), node),
                         .wants_logits = true,
                         .wants_state = left.there(),
                         .feature = {.left = left.Of(proposal.parents[node - 1])}});
}

void DraftTrunk::AppendMaskRows(int depths, RowPlacer* placer, ForwardBatch* batch) const {
  const int rows = parallel_.rows(depths);
  // The root's own row is one of committed tokens but where these have features alone.
  for (int row = context_ ? 0 : 1; row < rows; ++row) {
    batch->rows.push_back({.token = row == 0 ? last_token() : parallel_.mask_token,
                           .place = placer->Committed(root() + row),
                           .wants_logits = parallel_.Says(row, depths),
                           .feature = FeatureOfBlock(),
                           .block_left = parallel_.block > 0 ? rows - 1 - row : 0});
  }
}

bool DraftTrunk::AppendReadingRows(DraftModel& draft) {
  constexpr int kRows = DraftModel::kReadingRows;
  if (committed() == 0 || committed() > draft.max_context || !tree.Wants(0, shape)) return false;
  if (committed() - computed() <= kRows || !Reserve(kRows, draft)) return false;
  RowPlacer placer = draft.PlacerFor(kv);
  AppendCommittedRows(kRows, &placer, &draft.batch);
  return true;
}

bool DraftTrunk::AppendDraftRows(DraftModel& draft,
                                 StaticVector<std::int8_t, kMaxProposal + 1>* nodes) {
  nodes->clear();
  constexpr int kRows = DraftModel::kReadingRows;
  // Before its first row, beyond the draft's own context, or after what it could not read, there is
  // nothing to propose.
  if (committed() == 0) return false;
  if (committed() > draft.max_context || committed() - computed() > kRows) return false;
  if (!Reserve(kRows, draft)) return false;
  RowPlacer placer = draft.PlacerFor(kv);
  if (tree.Wants(0, shape)) {
    AppendCommittedRows(kRows, &placer, &draft.batch);
    AppendMaskRows(depths(draft), &placer, &draft.batch);
    nodes->push_back(0);
  }
  if (parallel_.there()) return !nodes->empty();
  for (int node = 1; node < tree.nodes(); ++node) {
    if (!tree.Wants(node, shape)) continue;
    if (root() + tree.proposal().Depth(node) >= draft.max_context) continue;
    AppendNodeRow(node, &placer, &draft.batch);
    nodes->push_back(static_cast<std::int8_t>(node));
  }
  return !nodes->empty();
}

int DraftTrunk::TakeRanking(int node, const Ranking& ranking) {
  if (node == 0) CommitRows(readable(), &kv);
  rankings[node] = ranking;
  return tree.Grow(node, /*row=*/node, shape, ranking);
}

int DraftTrunk::TakeRootsRanking(int node, const Ranking& ranking) {
  rankings[node] = ranking;
  return tree.Grow(node, tree.row(0), shape, ranking);
}

}  // namespace foretoken
