#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/speculation/draft_distribution.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// What a speculation cache has for one outcome of the round under way.
struct CacheAnswer {
  Outcome outcome;
  bool any = false;  ///< Something is prepared for some outcome of the round.
  /// Something is prepared for this outcome. The members below are set on a hit only.
  bool hit = false;
  bool retrieved = false;  ///< Retrieval named the outcome; the draft alone would not have.
  int rank = 0;            ///< Bonus tokens prepared before this one, likelier ones, at its node.
  Proposal proposal;       ///< Its root is the bonus token.
  /// What it was drawn from, as far as known. Valid as the answer is; null on a miss.
  const DraftDistributions* distributions = nullptr;
};

/// The speculation cache of one sequence (Section 3 of the paper): outcome -> prepared
/// proposal, for the current epoch only. Filled token by token as the speculator drafts, so it can
/// be asked at any time and answers with what is there. Never allocates once warm.
class SpeculationCache {
 public:
  /// Makes room for that many branches of `nodes` tokens, so that filling them allocates nothing.
  void Reserve(std::size_t branches, std::size_t nodes) {
    branches_.reserve(branches);
    nodes_.reserve(branches * nodes);
  }

  /// Forgets everything and accepts tokens of `epoch` only.
  void Reset(std::uint32_t epoch) {
    epoch_ = epoch;
    branches_.clear();
    nodes_.clear();
    for (DraftDistributions& distributions : distributions_) distributions.Clear();
    answer_.any = answer_.hit = false;
  }

  /// Appends node number `index`, below node `parent`, to the proposal for `outcome`. False (and no
  /// change) for a stale epoch, a number that is not the next one, or more than any speculator
  /// prepares.
  bool Append(std::uint32_t epoch, Outcome outcome, int index, int parent, Token token,
              bool retrieved = false);

  /// Sets the distribution of the children of node `parent` of that proposal. False (and no change)
  /// for a stale epoch or where nothing is prepared for `outcome`.
  bool SetDistribution(std::uint32_t epoch, Outcome outcome, int parent,
                       std::span<const TokenProbability> distribution);

  /// What is there for `outcome`, valid until the cache changes or is asked again.
  const CacheAnswer& Lookup(Outcome outcome);
  /// What it said last; nothing since a Reset.
  const CacheAnswer& answer() const { return answer_; }

  /// The bonus tokens prepared at `node`, likelier ones first.
  void BonusesAt(int node, std::vector<Token>* bonuses) const;

  std::size_t branches() const { return branches_.size(); }
  std::uint32_t epoch() const { return epoch_; }

 private:
  struct Branch {
    Outcome outcome;
    std::int16_t size;
    bool retrieved;
  };
  struct Node {
    std::int16_t branch;
    std::int8_t parent;
    Token token;
  };

  // The branch's number, branches() where there is none.
  std::size_t Find(Outcome outcome) const;

  std::uint32_t epoch_ = 0;
  // After a target pass nothing is in cache, and of all branches one is asked for: what arrives is
  // kept as it comes, in few lines, and only that one's proposal is put together. (A proposal for
  // each branch took 0.5 us a record.)
  std::vector<Branch> branches_;
  std::vector<Node> nodes_;
  CacheAnswer answer_;
  // By branch, as far as there are any; kept for their memory.
  std::vector<DraftDistributions> distributions_;
};

}  // namespace foretoken
