#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/draft/target_choice.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// The lookahead window of a sequence (Fu et al., 2024, Section 3): W columns of K = N - 1 levels.
/// The cell of column j and level l is a guess of the token j + l places behind the next one, made
/// K - l passes ago: a column is a trajectory of Jacobi iterations along the text, and what the
/// target says behind its last level makes an n-gram of it. Not thread-safe; allocates nothing.
class LookaheadWindow {
 public:
  /// Makes the window that of a sequence of these tokens, columns * levels <= kMaxProposal; `seed`
  /// draws the first guesses from its text. Does nothing if the window is that already.
  void Fit(std::span<const Token> tokens, std::uint64_t seed, int columns, int levels);

  /// The window as part of the tree: its first level is a chain below the root, and each of its
  /// tokens has its column's later levels as a chain. Nothing deeper than `depth`.
  void AppendTo(int depth, Proposal* proposal) const;

  /// Moves on: every column that the pass has verified drops its first level and takes what
  /// `choice` says behind its last one. `found(ngram)`, N tokens, is called for each of them.
  template <typename Found>
  void Observe(const VerifiedProposal& verified, TargetChoice* choice, Found&& found) {
    if (position_ != verified.tokens.size()) return;
    // The target's token behind each column; -1: it was not verified.
    std::array<Token, kMaxProposal> said;
    std::array<Token, kMaxProposal + 1> ngram;
    for (int j = 0; j < columns_; ++j) {
      const int node = LastNodeOf(j, *verified.proposal);
      said[j] = node == 0 ? -1 : choice->After(verified, node);
      if (node == 0) continue;
      for (int l = 0; l < levels_; ++l) ngram[l] = At(j, l);
      ngram[levels_] = said[j];
      found(std::span<const Token>(ngram).first(static_cast<std::size_t>(levels_) + 1));
    }
    Advance(verified, said);
  }

 private:
  Token& At(int column, int level) { return cells_[column * levels_ + level]; }
  Token At(int column, int level) const { return cells_[column * levels_ + level]; }
  // The node of a column's last level; 0 where the proposal does not have all of them.
  int LastNodeOf(int column, const Proposal& proposal) const;
  void Advance(const VerifiedProposal& verified, std::span<const Token> said);
  // Makes a column a piece of the text, from `level` on.
  void Draw(std::span<const Token> tokens, int column, int level);

  std::size_t position_ = 0;  // The position of the first guess: the sequence's tokens so far.
  std::uint64_t seed_ = 0;
  int columns_ = 0;                          // W
  int levels_ = 0;                           // K
  std::array<Token, kMaxProposal> cells_{};  // [W, K]
};

}  // namespace foretoken
