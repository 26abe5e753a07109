#include "core/draft/retrieval/sequence_tries.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace foretoken {

const InputTrie& SequenceTries::Follow(SequenceId sequence, std::span<const Token> tokens) {
  Followed& followed = followed_[sequence];
  if (followed.trie == nullptr) {
    if (spare_.empty()) {
      followed.trie = std::make_unique<InputTrie>();
    } else {
      followed.trie = std::move(spare_.back());
      spare_.pop_back();
    }
    // Earlier tokens would leave the window again.
    const std::size_t window = followed.trie->window();
    followed.tokens = tokens.size() - std::min(tokens.size(), window);
  }
  FT_CHECK(followed.tokens <= tokens.size(), "a sequence has become shorter");
  for (const Token token : tokens.subspan(followed.tokens)) followed.trie->Append(token);
  followed.tokens = tokens.size();
  return *followed.trie;
}

void SequenceTries::Forget(SequenceId sequence) {
  const auto found = followed_.find(sequence);
  if (found == followed_.end()) return;
  found->second.trie->Clear();
  spare_.push_back(std::move(found->second.trie));
  followed_.erase(found);
}

}  // namespace foretoken
