#include "core/draft/lookahead/lookahead_window.h"

#include <algorithm>

#include "base/check.h"
#include "base/numbers/philox.h"
#include "core/draft/grow_proposal.h"

namespace foretoken {

void LookaheadWindow::Fit(std::span<const Token> tokens, std::uint64_t seed, int columns,
                          int levels) {
  if (position_ == tokens.size() && columns_ == columns && levels_ == levels) return;
  FT_CHECK(columns * levels <= kMaxProposal, "a window of {} x {} tokens", columns, levels);
  position_ = tokens.size();
  seed_ = seed;
  columns_ = columns;
  levels_ = levels;
  for (int j = 0; j < columns; ++j) Draw(tokens, j, 0);
}

void LookaheadWindow::AppendTo(int depth, Proposal* proposal) const {
  int first = 0;
  for (int j = 0; j < std::min(columns_, depth); ++j) {
    first = Grow(proposal, first, At(j, 0));
    int node = first;
    for (int l = 1; l < std::min(levels_, depth - j); ++l) node = Grow(proposal, node, At(j, l));
  }
}

int LookaheadWindow::LastNodeOf(int column, const Proposal& proposal) const {
  int node = 0;
  for (int step = 0; step < column + levels_; ++step) {
    const Token token = step <= column ? At(step, 0) : At(column, step - column);
    node = proposal.ChildWith(node, token);
    if (node == 0) return 0;
  }
  return node;
}

// A round that accepts a tokens takes the sequence a + 1 places further. The cell (j, l) was a
// guess of the place of the cell (j - a, l - 1) then: its column is the (j - a)th.
void LookaheadWindow::Advance(const VerifiedProposal& verified, std::span<const Token> said) {
  const int accepted = verified.proposal->Depth(verified.outcome.node);
  position_ += static_cast<std::size_t>(accepted) + 1;
  for (int j = 0; j < columns_; ++j) {
    const int from = j + accepted;
    if (from >= columns_) {
      Draw(verified.tokens, j, 0);
      continue;
    }
    for (int l = 0; l + 1 < levels_; ++l) At(j, l) = At(from, l + 1);
    if (said[from] >= 0) {
      At(j, levels_ - 1) = said[from];
    } else {
      Draw(verified.tokens, j, levels_ - 1);
    }
  }
}

// The paper begins with random tokens; a piece of the text is a likelier trajectory.
void LookaheadWindow::Draw(std::span<const Token> tokens, int column, int level) {
  const std::uint64_t draw =
      PhiloxDraw(seed_, position_, static_cast<std::uint32_t>(column), NoisePurpose::kDrafting);
  const std::size_t begin = (draw * tokens.size()) >> 32;
  for (int l = level; l < levels_; ++l) At(column, l) = tokens[(begin + l) % tokens.size()];
}

}  // namespace foretoken
