#pragma once

#include <unordered_map>
#include <vector>

#include "draft/drafter.h"
#include "draft/retrieval/candidate_fusion.h"
#include "draft/retrieval/sequence_tries.h"

namespace foretoken {

/// A baseline: a trie cache in the manner of Lookahead (Zhao et al., 2024). Prompt and output of
/// the sequence itself and those of sequences that have ended, the latest million tokens of them;
/// the continuations of the longest suffix that occurs, most frequent first. Lookahead drops what
/// is rare, this trie what is old. Not thread-safe.
class TrieDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;

  /// Adds the tokens of a sequence that ended elsewhere.
  void Remember(std::span<const Token> tokens);

 private:
  static constexpr int kWindow = 1 << 20;

  void Propose(const InputTrie& input, const DraftContext& context);
  // The node of `suffix` in the trie of ended sequences, or 0.
  std::uint32_t FindEnded(std::span<const Token> suffix) const;

  SequenceTries tries_;
  InputTrie ended_{kWindow};
  std::unordered_map<SequenceId, std::vector<Token>> tokens_;  // Of sequences in flight.
  CandidateFusion fusion_;
  std::vector<CandidateSource> sources_;
};

}  // namespace foretoken
