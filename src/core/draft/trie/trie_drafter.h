#pragma once

#include <cstddef>
#include <vector>

#include "core/draft/drafter.h"
#include "core/draft/per_scope.h"
#include "core/draft/retrieval/candidate_fusion.h"
#include "core/draft/retrieval/sequence_tries.h"

namespace foretoken {

/// A baseline: a trie cache in the manner of Lookahead (Zhao et al., 2024). Prompt and output of
/// the sequence itself and those of sequences of its scope that have ended, the latest million
/// tokens of them; the continuations of the longest suffix that occurs, most frequent first.
/// Lookahead drops what is rare, this trie what is old. Not thread-safe.
class TrieDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override { tries_.Forget(sequence); }
  void Remember(const EndedText& text) override;

  /// Scopes that are remembered at once: a full window takes some 200 MB.
  static constexpr std::size_t kMaxScopes = PerScope<InputTrie>::kMost;

 private:
  static constexpr int kWindow = 1 << 20;

  void Propose(const InputTrie& input, const DraftContext& context);

  SequenceTries tries_;
  PerScope<InputTrie> ended_{[] { return InputTrie(kWindow); }};
  CandidateFusion fusion_;
  std::vector<CandidateSource> sources_;
};

}  // namespace foretoken
