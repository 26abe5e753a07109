#pragma once

#include <cstdint>
#include <vector>

#include "speculation/law.h"
#include "speculation/proposal.h"

namespace foretoken {

/// A proposal prepared for one outcome of the round under way; its root is the bonus token.
struct PreparedBranch {
  Outcome outcome;
  Proposal proposal;
  bool retrieved = false;  ///< Retrieval named the outcome; the draft alone would not have.
};

/// The speculation cache of one sequence (Section 3 of the paper): outcome -> prepared
/// proposal, for the current epoch only. Filled token by token as the speculator drafts, so it can
/// be asked at any time and answers with what is there. Never allocates once warm.
class SpeculationCache {
 public:
  /// Makes room for that many branches, so that filling them allocates nothing.
  void Reserve(std::size_t branches) {
    outcomes_.reserve(branches);
    branches_.reserve(branches);
  }

  /// Forgets everything and accepts tokens of `epoch` only.
  void Reset(std::uint32_t epoch) {
    epoch_ = epoch;
    outcomes_.clear();
    branches_.clear();
    for (ProposalLaws& laws : laws_) laws.Clear();
  }

  /// Appends node number `index`, below node `parent`, to the proposal for `outcome`. False (and no
  /// change) for a stale epoch, a number that is not the next one, or more than any speculator
  /// prepares.
  bool Append(std::uint32_t epoch, Outcome outcome, int index, int parent, Token token,
              bool retrieved = false);

  /// Sets the law of the children of node `parent` of that proposal. False (and no change) for a
  /// stale epoch or where nothing is prepared for `outcome`.
  bool SetLaw(std::uint32_t epoch, Outcome outcome, int parent,
              std::span<const TokenProbability> law);

  /// The laws known so far of a prepared proposal, which is one of branches().
  const ProposalLaws& LawsOf(const PreparedBranch& branch) const;

  /// nullptr on a miss.
  const PreparedBranch* Lookup(Outcome outcome) const;

  /// How many bonus tokens were prepared before that outcome's, likelier ones, at its node.
  int RankOf(Outcome outcome) const;

  const std::vector<PreparedBranch>& branches() const { return branches_; }
  std::uint32_t epoch() const { return epoch_; }

 private:
  std::uint32_t epoch_ = 0;
  // The branches' outcomes once more, next to each other: after a target pass nothing is in cache,
  // and a search should touch few lines.
  std::vector<Outcome> outcomes_;
  std::vector<PreparedBranch> branches_;
  std::vector<ProposalLaws> laws_;  // By branch, as far as there are any; kept for their memory.
};

}  // namespace foretoken
