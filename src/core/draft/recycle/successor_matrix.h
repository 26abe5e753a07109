#pragma once

#include <array>
#include <vector>

#include "core/draft/drafter.h"

namespace foretoken {

/// M of Token Recycling (Luo et al., 2024, Section 3.1): of every token the k = 8 tokens that the
/// target said likeliest behind it when it last said something behind it, in whatever context. 32
/// bytes a token of the vocabulary. Not thread-safe.
class SuccessorMatrix {
 public:
  static constexpr int kRanks = 8;

  explicit SuccessorMatrix(int vocabulary);

  /// The successor of rank 0 .. kRanks - 1; -1 where it is not known.
  Token At(Token token, int rank) const { return rows_[token][rank]; }
  /// Takes what a pass said of the root and of every node, accepted or not. Where several carry one
  /// token the accepted node is heard, of several such the last.
  void Learn(const VerifiedProposal& verified);
  void Clear();

 private:
  using Row = std::array<Token, kRanks>;

  void Update(Token token, Logits row);

  std::vector<Row> rows_;  // [vocabulary]
};

}  // namespace foretoken
