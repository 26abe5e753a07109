#pragma once

#include <array>

#include "core/speculation/plan.h"

namespace foretoken {

/// How likely each outcome of a proposal is, learned from outcomes. The draft's candidates after a
/// node are numbered: its children in the tree first, in their order, then the draft's other
/// tokens, best first. Learned are the acceptance rate a_p (candidate 0 of a node with children)
/// and how often the others were it, apart for nodes with children (k < K) and leaves (k = K).
/// Decayed, so it follows the text.
class OutcomePredictor {
 public:
  /// Learns from one sequence, and forgets within 100 outcomes.
  OutcomePredictor() : OutcomePredictor(100) {}
  /// Learns from all sequences of a draft, and forgets within 1000.
  static OutcomePredictor OfAllSequences() { return OutcomePredictor(1000); }
  /// What a further sequence begins with: what this one has learned, to be outweighed within some
  /// 50 outcomes of the sequence's own.
  OutcomePredictor ForSequence() const;

  /// The target's token after a visited node was that candidate; -1: none of them.
  void Observe(bool leaf, int candidate);

  /// a_p: how often the first child is right.
  double acceptance() const { return accepted_.Rate(0); }

  /// P(the target's token is that candidate | the node is reached). At a node with c children the
  /// candidates below c are the children's acceptance, those from c on the bonus token's.
  double Probability(bool leaf, int candidate) const;

 private:
  // How often each candidate was it, as weights that decay.
  struct Counts {
    std::array<double, kMaxRanking> weights{};
    double total = 0;  // With those of no candidate.

    double Rate(int candidate) const { return weights[candidate] / total; }
    void Add(int candidate, double decay);
    void Scale(double factor);
  };

  explicit OutcomePredictor(double memory);

  double decay_;
  Counts accepted_;  // Candidate 0 only.
  Counts rejected_;  // Candidates 1, 2, ..., given that 0 was wrong.
  Counts leaf_;      // Candidates 0, 1, ...
};

}  // namespace foretoken
