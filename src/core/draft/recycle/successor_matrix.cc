#include "core/draft/recycle/successor_matrix.h"

#include <algorithm>

#include "core/draft/recycle/top_tokens.h"

namespace foretoken {
namespace {

constexpr std::array<Token, SuccessorMatrix::kRanks> kUnknown = {-1, -1, -1, -1, -1, -1, -1, -1};

}  // namespace

SuccessorMatrix::SuccessorMatrix(int vocabulary)
    : rows_(static_cast<std::size_t>(vocabulary), kUnknown) {}

void SuccessorMatrix::Learn(const VerifiedProposal& verified) {
  const auto vocabulary = static_cast<std::int64_t>(rows_.size());
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
  TopTokens(row, static_cast<int>(rows_.size()), successors);
}

void SuccessorMatrix::Clear() { std::ranges::fill(rows_, kUnknown); }

}  // namespace foretoken
