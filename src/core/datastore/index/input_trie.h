#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/datastore/index/token_tree.h"
#include "foretoken/types.h"

namespace foretoken {

/// Every string of up to kDepth tokens of one sequence, or of several, with how often it occurs
/// (Appendix A.1 of the SSSD paper). A token counts as soon as it is appended. Only the last
/// `window` tokens are kept: at most kDepth nodes each, however long the sequence gets. Not
/// thread-safe.
class InputTrie {
 public:
  static constexpr int kDepth = 9;

  explicit InputTrie(int window = 1 << 15);

  void Append(Token token);
  /// What follows belongs to another sequence.
  void Break();
  /// Forgets everything but keeps the memory.
  void Clear();

  int window() const { return ring_.size(); }
  const TokenTree& tree() const { return tree_; }
  /// The node of the last `length` <= kDepth tokens; 0 where the sequence is shorter.
  std::uint32_t Suffix(int length) const { return length <= active_ ? suffixes_[length] : 0; }

 private:
  static constexpr Token kBreak = -1;

  void Push(Token token);
  void ForgetOldest();

  TokenTree tree_;
  int active_ = 0;  // Suffixes that there are.
  std::array<std::uint32_t, kDepth + 1> suffixes_ = {};
  std::vector<Token> ring_;  // The window, and breaks.
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace foretoken
