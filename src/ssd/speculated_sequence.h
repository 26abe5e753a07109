#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draft/draft_model.h"
#include "sampling/sampler.h"
#include "speculation/proposal.h"
#include "ssd/messages.h"
#include "ssd/outcome_predictor.h"

namespace foretoken {

/// The draft's best tokens after some node, best first, under the shared noise of that position.
using Ranking = StaticVector<Token, kMaxFanout + 1>;

/// A chain being prepared for one outcome. Row i of the branch (i = 0: the bonus token) has its KV
/// in a scratch slot; each computed row has yielded one ranking and thereby one chain token.
struct Branch {
  Outcome outcome;
  double weight = 0;  ///< Estimated probability of the outcome: the likeliest are drafted first.
  bool done = false;  ///< Nothing more to draft: K tokens, a stop token or the context limit.
  StaticVector<Token, kMaxProposal> chain;
  StaticVector<Ranking, kMaxProposal> rankings;

  int rows() const { return static_cast<int>(chain.size()); }
  Token next_input() const { return chain.empty() ? outcome.bonus : chain.back(); }
};

/// One sequence in the speculator: the path under verification on the trunk, what the draft would
/// say after each of its nodes, and the branches prepared for the outcomes.
class SpeculatedSequence {
 public:
  SpeculatedSequence(const OpenMessage& open, const ConfigureMessage& config, int vocabulary);

  /// Takes in prompt and output so far; complete() once all announced tokens and biases are here.
  void AddTokens(std::span<const Token> tokens);
  void AddBiases(std::span<const OpenBiasMessage::Bias> biases);
  bool complete() const;

  /// Moves on to the next round. If a branch was prepared for the outcome, its rows move onto the
  /// trunk and its rankings become those of the new path.
  void Advance(const OutcomeMessage& outcome, DraftModel& draft);

  /// Stores the ranking after the next unranked node of the path.
  void AddRanking(const Ranking& ranking) { rankings_.push_back(ranking); }
  /// Creates branches at every ranked node that has none yet.
  void Expand(std::int32_t max_context);

  /// Appends the row that extends `branch` to `batch`. False when the pool has no room.
  bool AppendBranchRow(DraftModel& draft, const Branch& branch, std::int32_t table,
                       ForwardBatch* batch);
  /// Stores the ranking that this row has yielded; returns the new chain token.
  Token ExtendBranch(Branch* branch, const Ranking& ranking, std::int32_t max_context);

  /// Just-in-time drafting: appends the best token after the tip to the proposal; false when the
  /// proposal is complete (and the mode is over).
  bool ExtendJit(std::int32_t max_context);

  /// Tokens that follow the committed history up to path node `node`.
  std::span<const Token> ProposalUpTo(int node) const;
  int proposal_size() const { return trunk.length() - trunk.committed(); }
  bool tip_ranked() const { return static_cast<int>(rankings_.size()) == proposal_size() + 1; }
  int ranked() const { return static_cast<int>(rankings_.size()); }
  bool IsStop(Token token) const;
  /// F_k of the proposal under verification.
  const FanoutShape& fanout() const {
    return after_fallback_ ? plan_.after_fallback : plan_.primary;
  }

  SequenceId id = 0;
  std::uint32_t epoch = 0;
  bool jit = false;  ///< The engine waits for a chain.
  SamplingParams sampling;
  TokenHistory history;
  DraftTrunk trunk;
  SequenceKv scratch;  ///< Branch b's row i lies at position b * K + i.
  std::vector<Branch> branches;
  OutcomePredictor predictor;

 private:
  void Promote(const Branch& branch, int proposal_size, DraftModel& draft);
  void Learn(const OutcomeMessage& outcome);

  SpeculationPlan plan_;
  bool after_fallback_ = true;  // The proposal under verification came from a fallback.
  std::int32_t announced_tokens_;
  std::int32_t announced_prompt_;
  std::int32_t announced_biases_;
  std::vector<Token> opening_;  // Tokens of the Open records until all are here.
  StaticVector<Token, kMaxStopTokens> stop_tokens_;
  StaticVector<Ranking, kMaxProposal + 1> rankings_;  // After nodes 0, 1, ...
  int expanded_ = 0;                                  // Nodes that have their branches.
};

}  // namespace foretoken
