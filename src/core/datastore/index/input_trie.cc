#include "core/datastore/index/input_trie.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {

InputTrie::InputTrie(int window) : ring_(window) {
  FT_CHECK(window > kDepth, "a window of {} tokens", window);
}

void InputTrie::Append(Token token) {
  FT_CHECK(token >= 0, "token {}", token);
  active_ = std::min(active_ + 1, kDepth);
  // After a target pass nothing of it is in cache.
  for (int length = 1; length <= active_; ++length) tree_.Prefetch(suffixes_[length - 1], token);
  for (int length = active_; length > 0; --length) {
    suffixes_[length] = tree_.FindOrAdd(suffixes_[length - 1], token);
    tree_.Count(suffixes_[length]);
  }
  tree_.Count(0);
  Push(token);
}

void InputTrie::Break() {
  if (active_ == 0) return;
  active_ = 0;
  Push(kBreak);
}

void InputTrie::Clear() {
  tree_.Clear();
  active_ = 0;
  begin_ = 0;
  size_ = 0;
}

void InputTrie::Push(Token token) {
  if (size_ == ring_.size()) ForgetOldest();
  ring_[(begin_ + size_++) % ring_.size()] = token;
}

// The strings that start with the oldest token occur once less. All of them have been counted: the
// window is longer than they are.
void InputTrie::ForgetOldest() {
  std::array<std::uint32_t, kDepth> path;
  int length = 0;
  std::uint32_t node = 0;
  while (length < kDepth) {
    const Token token = ring_[(begin_ + length) % ring_.size()];
    if (token == kBreak) break;
    node = tree_.Find(node, token);
    path[length++] = node;
  }
  if (length > 0) tree_.Uncount(0);
  while (length > 0) tree_.Uncount(path[--length]);
  begin_ = (begin_ + 1) % ring_.size();
  --size_;
}

}  // namespace foretoken
