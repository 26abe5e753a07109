#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/datastore/index/suffix_automaton.h"
#include "core/draft/drafter.h"
#include "core/draft/per_scope.h"
#include "core/draft/retrieval/candidate_fusion.h"

namespace foretoken {

/// A baseline: SuffixDecoding (Oliaro et al., arXiv 2411.04975). Where the last p tokens, p up to
/// 64, occur in the sequence's own prompt and output or in outputs of sequences of its scope that
/// have ended, a tree of at most MAX_SPEC(p) = alpha p of the likeliest continuations; of the trees
/// of all p and of both texts the one of the highest score is proposed. Not thread-safe.
///
/// As in the paper: D(N), the chance of a node, is the product of C(child) / C(parent) along its
/// path; a tree grows by the leaf of the greatest D, none below the least; SCORE is the sum of D.
/// An automaton takes the place of the suffix tree: it tells the same counts. Not captured: the
/// choice between this and a draft model by the score (the hybrid), the speculation offset, and
/// that single ended sequences are dropped one by one: they go by generations, the latest quarter
/// to half a million tokens of a scope are there.
class SuffixDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;
  void Remember(const EndedText& text) override;

  static constexpr int kLongestPattern = 64;
  static constexpr std::size_t kGenerationTokens = std::size_t{1} << 18;

 private:
  // A sequence in flight.
  struct Text {
    SuffixAutomaton automaton;  // Holds prompt and output.
    std::size_t tokens = 0;
  };
  // Outputs of ended sequences; when the younger are enough to fill one, the older go.
  struct Generations {
    SuffixAutomaton young;
    SuffixAutomaton old;
    void Clear() {
      young.Clear();
      old.Clear();
    }
  };

  const Text& Follow(const DraftContext& context);
  void Consider(const SuffixAutomaton& texts, const DraftContext& context, double* best_score);

  std::unordered_map<SequenceId, std::unique_ptr<Text>> texts_;
  std::vector<std::unique_ptr<Text>> spare_;
  PerScope<Generations> ended_{[] { return Generations(); }};
  CandidateFusion fusion_;
  Proposal tried_;
};

}  // namespace foretoken
