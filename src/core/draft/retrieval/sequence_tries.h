#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/datastore/index/input_trie.h"
#include "foretoken/types.h"

namespace foretoken {

/// The input tries of the sequences in flight. Not thread-safe. Tries of ended sequences are used
/// again, so that nothing is allocated once there have been as many and as long ones before.
class SequenceTries {
 public:
  /// The trie of `sequence`, brought up to date with `tokens`, all of its tokens so far.
  const InputTrie& Follow(SequenceId sequence, std::span<const Token> tokens);
  void Forget(SequenceId sequence);

 private:
  struct Followed {
    std::unique_ptr<InputTrie> trie;
    std::size_t tokens = 0;  // How many tokens the trie has seen.
  };

  std::unordered_map<SequenceId, Followed> followed_;
  std::vector<std::unique_ptr<InputTrie>> spare_;
};

}  // namespace foretoken
