#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/stop_text.h"
#include "core/kv/kv_cache.h"
#include "core/planner/observations.h"
#include "core/sampling/history.h"
#include "core/speculation/draft_distribution.h"
#include "core/speculation/proposal.h"
#include "foretoken/request.h"
#include "foretoken/tokenizer.h"
#include "foretoken/types.h"

namespace foretoken {

/// One request in flight: its tokens, its KV on the target, and the proposal to be verified next.
/// In steady state all tokens but the last are computed. Owned by the scheduler.
class Sequence {
 public:
  /// `eos` are the model's end-of-sequence tokens; `tokenizer` may be null.
  Sequence(SequenceId sequence_id, Request new_request, const SpeculationPlan& first_plan,
           int vocabulary, int max_context, const std::vector<Token>& eos,
           const Tokenizer* tokenizer);

  /// Tokens whose KV is not computed yet; at least one (the last committed token).
  int uncomputed() const { return std::ssize(tokens) - kv.committed; }
  std::int32_t root() const { return static_cast<std::int32_t>(tokens.size()) - 1; }
  int output_tokens() const { return std::ssize(tokens) - prompt_tokens; }
  /// Whether the pass over `position` tells a log-probability of the prompt that is still wanted.
  bool Scores(std::int32_t position) const {
    return request.prompt_logprobs >= 0 && position >= scored && position < prompt_tokens - 1;
  }
  /// Whether any position does.
  bool scores_prompt() const { return Scores(scored); }
  /// Whether the pass over `position` gives a state of the prompt that its embedding still lacks.
  bool Pools(std::int32_t position) const {
    return request.embedding.has_value() && position >= pooled &&
           (request.embedding == Pooling::kMean || position == prompt_tokens - 1);
  }
  /// Whether the prompt's rows are wanted themselves, so that a cached prefix would leave some out.
  bool needs_all_rows() const { return scores_prompt() || request.embedding == Pooling::kMean; }
  /// How many it may yet emit, at most.
  int TokensLeft() const;
  /// The most proposal tokens on one path that could all be emitted, with a bonus token, within
  /// the limits.
  int DepthLimit() const;
  /// The most proposal tokens whose KV fits beside the committed ones' in the context.
  int NodeLimit() const;

  /// Commits the tokens of a verified round, cut where the sequence ends; sets `finish` if it
  /// does. Token-level only: stop strings are found in EmitText. Returns how many were committed.
  int Commit(std::span<const Token> emitted);

  /// Turns the `index`-th output token into text, in order. Sets `finish` at a stop string; at the
  /// end of the sequence whatever was held back comes too. The view lives until the next call.
  std::string_view EmitText(Token token, bool last);

  /// How the `index`-th token of the round came to be: the last one visited is the bonus token.
  TokenOrigin OriginOf(std::size_t index) const;

  /// Where the sequence would end after `token` as its latest output token, if it would.
  std::optional<FinishReason> EndAfter(Token token, int outputs) const;

  const SequenceId id;
  Request request;
  const int prompt_tokens;
  std::vector<Token> tokens;       ///< Prompt and output.
  std::vector<Token> stop_tokens;  ///< The request's, and end-of-sequence unless ignored.
  TokenHistory history;
  SequenceKv kv;
  SpeculationPlan plan;
  std::optional<SequenceEstimate> estimate;  ///< The planner's, where it makes the plans.
  Proposal proposal;
  Proposal shadow;  ///< The proposal that PlannerSettings::shadow_drafter would have made.
  /// How many tokens the sequence had when `shadow` was proposed; 0: none was proposed.
  std::size_t shadow_position = 0;
  std::vector<Token> scripted;  ///< ScriptedAnswer to its prompt.
  bool draws = false;           ///< Proposals are drawn, to be verified by rejection.
  /// The distributions that `proposal` was drawn from, where it is drawn.
  DraftDistributions distributions;
  bool awaits_jit = false;
  bool awaits_mask = false;      ///< Its grammar's next mask is not done: it sits rounds out.
  bool speculated = false;       ///< Known to some proposer.
  bool opened = false;           ///< Known to the speculator.
  bool asked_for_cache = false;  ///< Retrieval was, for what the speculation cache should hold.
  bool admitted_before = false;
  /// Prompt tokens after the first whose log-probabilities are computed, and these until the
  /// listener is told.
  std::int32_t scored = 0;
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;
  bool prompt_told = false;
  /// Prompt tokens up to the last one whose state the embedding has, and the sum of these states.
  std::int32_t pooled = 0;
  std::vector<double> state_sum;
  std::optional<FinishReason> finish;
  RequestStats stats;

  // The pass under way.
  int pass_rows = 0;  ///< Committed tokens computed in it.
  bool in_pass = false;
  bool verifies = false;        ///< The pass reaches the root: there is an outcome.
  int prompt_logits = 0;        ///< Rows that tell log-probabilities of the prompt.
  int first_prompt_logits = 0;  ///< Index of the first logits row of `prompt_logits`.
  int first_logits = 0;         ///< Index of the root's logits row.
  int states = 0;               ///< Rows whose states the embedding needs.
  int first_state = 0;          ///< Index of the first state of `states`.
  Outcome outcome;
  /// The row behind the accepted path has no largest logit that is a number: nothing follows.
  bool not_finite = false;
  /// So it was in the pass before, and this one is without a proposal (TakeBack).
  bool alone = false;
  StaticVector<Token, kMaxProposal + 1> emitted;  ///< The accepted path, then the bonus token.
  StaticVector<std::int8_t, kMaxProposal + 1> verified_nodes;  ///< Where each was chosen.
  /// Which of `emitted` a lossy rule put in place of what the target chose there.
  StaticVector<std::int8_t, kMaxProposal + 1> lossy;
  Proposal verified;            ///< What the pass verified.
  int accepted = 0;             ///< Nodes on the accepted path.
  std::optional<int> hit_rank;  ///< RoundRecord's.
  std::optional<bool> hit;  ///< Whether the speculation cache knew the outcome, if it was asked.
  bool prepared = false;    ///< Whether the speculation cache knew any outcome of the round.

 private:
  int max_context_;
  std::optional<IncrementalDecoder> decoder_;
  StopText stop_text_;
  std::string text_;
};

}  // namespace foretoken
