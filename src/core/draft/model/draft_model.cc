#include "core/draft/model/draft_model.h"

#include <array>
#include <cmath>

namespace foretoken {
namespace {

// A mask has so many steps, whatever those before it took.
constexpr std::int64_t kLeastMaskSteps = 1 << 12;
// Tokens whose scores say what chances the children of a tree's node have.
constexpr int kScored = 8;

// Rows of branches lie in scratch blocks of their own, whose recent parts are referred to as well.
KvRoom DraftRoom(const ModelConfig& config, int sequences, int context, int scratch) {
  const std::int64_t scratch_blocks = sequences * BlocksFor(scratch);
  const KvDemand demand{
      .sequences = sequences,
      .rows = std::int64_t{sequences} * DraftModel::kReadingRows + scratch_blocks * kBlockSize,
      .nodes = kMaxProposal};
  return RoomFor(sequences * BlocksFor(context + kMaxProposal) + scratch_blocks, WindowOf(config),
                 AnchorsOf(config), demand, /*prefix_cache=*/false);
}

// The place of the target's `token` among the candidates after a node (OutcomePredictor): its
// children, then the rest of the ranking; -1 where it is not one of them.
int CandidateNumber(const Proposal& proposal, int node, const Ranking& ranking, Token token) {
  int number = 0;
  for (int i = node; i < proposal.size(); ++i) {
    if (proposal.parents[i] != node) continue;
    if (proposal.tokens[i] == token) return number;
    ++number;
  }
  for (const RankedToken& candidate : ranking) {
    if (candidate.token == token) return number;
    if (proposal.ChildWith(node, candidate.token) == 0) ++number;
  }
  return -1;
}

void TakeConfidence(const SaidRow& said, Ranking* ranking) {
  if (!said.confidence || !std::isfinite(*said.confidence) || ranking->empty()) return;
  (*ranking)[0].log_odds = *said.confidence;
}

}  // namespace

DraftModel::DraftModel(Model* draft_model, int max_sequences, int context, int scratch)
    : model(draft_model),
      max_context(std::min(context, draft_model->config().max_positions)),
      kv(model, DraftRoom(model->config(), max_sequences, max_context, scratch)),
      sampler(&model->backend(), model->config().vocabulary),
      said(model) {}

DraftModel::DraftModel(Model* draft_model, int context)
    : model(draft_model),
      max_context(std::min(context, draft_model->config().max_positions)),
      kv(model),
      sampler(&model->backend(), model->config().vocabulary),
      said(model) {}

bool DraftModel::PrepareMask(const TokenHistory& history, std::span<const Token> path) {
  std::int64_t steps = std::max(mask_steps_left, kLeastMaskSteps);
  mask_steps_left -= steps;
  const bool ready = history.PrepareMask(path, &steps);
  mask_steps_left += steps;
  return ready;
}

TreeNodes WantedAt(const DraftTree& tree, const TreeShape& shape, int depth) {
  TreeNodes nodes;
  for (int node = 0; node < tree.nodes(); ++node) {
    if (tree.proposal().Depth(node) != depth || !tree.Wants(node, shape)) continue;
    nodes.push_back(static_cast<std::int8_t>(node));
  }
  return nodes;
}

Ranking RankRow(DraftModel& draft, const SaidRow& said, const SamplingParams& sampling,
                const TokenHistory& history, const RankRequest& request,
                std::span<const TokenProbability>* distribution) {
  if (distribution != nullptr) *distribution = {};
  Ranking ranking;
  if (!draft.PrepareMask(history, request.path)) return ranking;
  if (distribution != nullptr) {
    const auto likeliest = draft.sampler.LikeliestTokens(said.logits.values, sampling, history,
                                                         request.path, kMaxDistributionTokens);
    *distribution = likeliest;
    for (const Token token : draft.draw.Draw(request, likeliest)) {
      ranking.push_back({.token = token});
    }
    TakeConfidence(said, &ranking);
    return ranking;
  }
  std::array<Candidate, kMaxRanking> best;
  const int wanted = request.children + request.candidates;
  const int count =
      std::min(request.children > 1 ? std::max(wanted, kScored) : wanted, kMaxRanking);
  std::size_t found =
      draft.sampler.Rank(said.logits, sampling, history, request.path,
                         request.root + 1 + request.path.size(), std::span(best).first(count));
  // Infinite logits give no chances: nothing is proposed.
  if (found > 0 && !std::isfinite(best[0].score)) found = 0;
  std::array<double, kMaxRanking> scores;
  for (std::size_t i = 0; i < found; ++i) {
    ranking.push_back({.token = best[i].token});
    scores[i] = best[i].score;
  }
  SetLogOdds(std::span(scores).first(found), sampling.temperature, &ranking);
  TakeConfidence(said, &ranking);
  return ranking;
}

void DraftTrunk::Learn(int node, Token token, DraftModel& draft) {
  const Proposal& proposal = tree.proposal();
  const bool leaf = proposal.FirstChild(node) == 0;
  const int candidate = CandidateNumber(proposal, node, rankings[node], token);
  predictor.Observe(leaf, candidate);
  draft.outcomes.Observe(leaf, candidate);
  if (best_first.has_value()) best_first->chances->Observe(rankings[node], token);
}

void DraftTrunk::Plan(int width, int depth, int max_nodes, float temperature, DraftModel& draft) {
  if (parallel_.there()) depth = std::min(depth, parallel_.positions);
  if (reads_paths()) depth = std::min(depth, feature_.heads);
  if (draft.kv.is_targets()) most_nodes_ = std::min(max_nodes, kMaxProposal);
  shape = MakeTreeShape(predictor, width, depth, max_nodes);
  best_first.reset();
  // Where a pass says several positions, it says them before any ranking.
  if (width == 1 || draws_ || parallel_.there()) return;
  best_first = BestFirst{.width = width,
                         .depth = depth,
                         .max_nodes = std::min(max_nodes, kMaxProposal),
                         .cutoff = shape.nodes.back().reached,
                         .first = predictor.acceptance(),
                         .chances = temperature > 0 ? &draft.noisy_chances : &draft.greedy_chances};
}

void DraftTrunk::KeepBest(DraftModel& draft) {
  if (!best_first.has_value() || !tree.ranked(0)) return;
  const auto origins = tree.KeepBest(*best_first, rankings);
  StaticVector<MovedNode, kMaxProposal> moved;
  for (int node = 1; node < tree.nodes(); ++node) {
    const int origin = origins[node];
    if (origin == node || !tree.ranked(node)) continue;
    moved.push_back({static_cast<std::int8_t>(origin), static_cast<std::int8_t>(node)});
    rankings[node] = rankings[origin];
    left.Keep(node, left.Of(origin));
    tree.SetRow(node, node);
  }
  MoveNodes(root(), moved, draft.kv.memory(), kv);
}

void DraftTrunk::Commit(std::span<const Token> tokens, DraftModel& draft) {
  if (committed_.capacity() == 0) committed_.reserve(DraftModel::kFirstCapacity);
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
  // If only a part of the tree was verified, the last token may have its row, too. Its ranking goes
  // with the tree, so that the row is computed again.
  if (!kept.empty() && kept.size() == tokens.size()) kept.resize(kept.size() - 1);
  // The target has kept what was accepted, and shows it.
  if (computed && !context_ && !draft.kv.is_targets())
    CommitPath(old_root, kept, draft.kv.memory(), &kv);
  features.DropBelow(kv.committed - 1);  // Heads read that of the last one again.
  tree.Clear();
}

void DraftTrunk::Rewind(std::span<const Token> tokens, std::int32_t settled, DraftModel& draft) {
  if (draft.reads_features()) return;
  // One token at least is committed anew: its row says what follows.
  const auto most = std::min(committed(), static_cast<std::int32_t>(tokens.size()) - 1);
  std::int32_t same = std::min(settled, most);
  while (same < most && committed_[same] == tokens[same]) ++same;
  if (same == committed()) return;
  committed_.resize(same);
  tree.Clear();
  draft.kv.Truncate(std::min(same, computed()), &kv);
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
  AppendRow(tree.proposal(), node, placer, batch);
}

void DraftTrunk::AppendRow(const Proposal& proposal, int node, RowPlacer* placer,
                           ForwardBatch* batch) const {
  batch->rows.push_back({.token = proposal.tokens[node - 1],
                         .place = placer->Node({root(), proposal.parents}, node),
                         .wants_logits = true,
                         .wants_state = left.there(),
                         .feature = FeatureBehind(proposal.parents[node - 1]),
                         .path = PathOf(PathTokens(proposal, node), batch)});
}

RowPath DraftTrunk::PathOf(std::span<const Token> tokens, ForwardBatch* batch) const {
  if (!reads_paths()) return {};
  StaticVector<Token, 2 * kMaxProposal + 1> before = {last_token()};
  for (const Token token : tokens.first(tokens.size() - 1)) before.push_back(token);
  return batch->AddPath(before);
}

void DraftTrunk::AppendMaskRows(int depths, RowPlacer* placer, ForwardBatch* batch) const {
  const int rows = parallel_.rows(depths);
  // The root's own row is one of committed tokens but where these have features alone.
  for (int row = context_ ? 0 : 1; row < rows; ++row) {
    batch->rows.push_back({.token = row == 0 ? last_token() : parallel_.mask_token,
                           .place = PlaceOfBlock(placer->Committed(root() + row), placer),
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

bool DraftTrunk::AppendDraftRows(DraftModel& draft, const Proposal& guesses, TreeNodes* nodes) {
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
    if (!draft.Reaches(root(), tree.proposal().Depth(node))) continue;
    AppendNodeRow(node, &placer, &draft.batch);
    nodes->push_back(static_cast<std::int8_t>(node));
  }
  if (nodes->empty()) return false;
  Proposal guessed = tree.proposal();
  for (const Token guess : guesses.tokens) {
    const int node = guessed.size() + 1;
    if (!draft.Reaches(root(), node)) break;
    guessed.Extend(guess);
    AppendRow(guessed, node, &placer, &draft.batch);
    nodes->push_back(static_cast<std::int8_t>(node));
  }
  return true;
}

void DraftTrunk::TakeConfidence(int node, const Ranking& ranking, DraftTree* grown) const {
  if (!confident_ || ranking.empty()) return;
  grown->Expect(node, 1 / (1 + std::exp(-double{ranking[0].log_odds})));
}

int DraftTrunk::TakeRanking(int node, const Ranking& ranking) {
  if (node == 0) CommitRows(readable(), &kv);
  rankings[node] = ranking;
  TakeConfidence(node, ranking, &tree);
  if (!best_first.has_value()) return tree.Grow(node, /*row=*/node, shape, ranking);
  tree.SetRow(node, node);  // KeepBest gives it children.
  return 0;
}

int DraftTrunk::TakeRootsRanking(int node, const Ranking& ranking) {
  rankings[node] = ranking;
  TakeConfidence(node, ranking, &tree);
  return tree.Grow(node, tree.row(0), shape, ranking);
}

}  // namespace foretoken
