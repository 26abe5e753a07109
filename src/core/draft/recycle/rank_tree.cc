#include "core/draft/recycle/rank_tree.h"

#include <algorithm>
#include <array>
#include <queue>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/draft/grow_proposal.h"
#include "core/draft/recycle/top_tokens.h"

namespace foretoken {
namespace {

constexpr std::array<Token, SuccessorMatrix::kRanks> kUnknown = {-1, -1, -1, -1, -1, -1, -1, -1};

constexpr int kMostNodes = 1024;

// The assumed chance that the target takes the successor of this rank, which counts from 0.
double Chance(int rank) { return 0.6 / ((rank + 1) * (rank + 1)); }

struct RankedNode {
  double chance;
  int order;  // Ties go to the earlier one.
  RankNode node;
  bool operator<(const RankedNode& other) const {
    return chance != other.chance ? chance < other.chance : order > other.order;
  }
};

}  // namespace

SuccessorMatrix::SuccessorMatrix(int vocabulary) : rows_(vocabulary, kUnknown) {}

void SuccessorMatrix::Learn(const VerifiedProposal& verified) {
  const std::int64_t vocabulary = rows_.size();
  const Proposal& proposal = *verified.proposal;
  const auto update = [&](int node) {
    const Token token = node == 0 ? verified.tokens.back() : proposal.tokens[node - 1];
    Update(token, verified.logits.Row(node, vocabulary));
  };
  const auto path = PathTo(proposal, verified.outcome.node);
  for (int node = 1; node <= proposal.size(); ++node) {
    if (std::ranges::find(path, node) == path.end()) update(node);
  }
  update(0);
  for (const int node : path) update(node);
}

void SuccessorMatrix::Update(Token token, Logits row) {
  Row& successors = rows_[token];
  successors = kUnknown;
  TopTokens(row, Int(rows_.size()), successors);
}

void SuccessorMatrix::Clear() { std::ranges::fill(rows_, kUnknown); }

RankTree RankProductTree(int nodes) {
  RankTree tree;
  std::priority_queue<RankedNode> queue;
  int order = 0;
  const auto add_children = [&](int parent, double chance) {
    for (int rank = 0; rank < SuccessorMatrix::kRanks; ++rank) {
      queue.push({chance * Chance(rank),
                  order++,
                  {static_cast<std::int16_t>(parent), static_cast<std::uint8_t>(rank)}});
    }
  };
  add_children(0, 1.0);
  while (std::ssize(tree) < nodes) {
    const RankedNode best = queue.top();
    queue.pop();
    tree.push_back(best.node);
    add_children(Int(tree.size()), best.chance);
  }
  return tree;
}

RankTree HalvingTree(int nodes) {
  struct Place {
    int breadth;
    int depth;
  };
  RankTree tree;
  std::vector<Place> places = {{SuccessorMatrix::kRanks, 0}};
  for (int parent = 0; std::ssize(tree) < nodes; ++parent) {
    const Place above = places[parent];
    int breadth = above.depth == 1 ? above.breadth : above.breadth / 2;
    for (int rank = 0; rank < above.breadth; ++rank, breadth /= 2) {
      tree.push_back({static_cast<std::int16_t>(parent), static_cast<std::uint8_t>(rank)});
      places.push_back({std::max(1, breadth), above.depth + 1});
    }
  }
  tree.resize(nodes);
  return tree;
}

void AppendRanks(const RankTree& tree, const SuccessorMatrix& matrix, const DraftContext& context) {
  FT_CHECK(tree.size() < kMostNodes);
  Proposal* const proposal = context.proposal;
  // The node of the proposal for each node of the tree; -1: its token is not known, or it is too
  // deep.
  std::array<std::int8_t, kMostNodes> places;
  places[0] = 0;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (proposal->size() >= std::min(context.max_nodes, kMaxProposal)) return;
    const int parent = places[tree[i].parent];
    places[i + 1] = -1;
    if (parent < 0 || proposal->Depth(parent) >= context.lookahead) continue;
    const Token above = parent == 0 ? context.tokens.back() : proposal->tokens[parent - 1];
    const Token token = matrix.At(above, tree[i].rank);
    if (token < 0) continue;
    places[i + 1] = static_cast<std::int8_t>(Grow(proposal, parent, token));
  }
}

}  // namespace foretoken
