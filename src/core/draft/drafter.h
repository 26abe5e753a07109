#pragma once

#include <cstdint>
#include <span>

#include "core/backend/backend.h"
#include "core/datastore/datastore_tenant.h"
#include "core/kv/tap_rows.h"
#include "core/sampling/history.h"
#include "core/speculation/draft_distribution.h"
#include "core/speculation/proposal.h"
#include "foretoken/sampling.h"
#include "foretoken/types.h"

namespace foretoken {

/// The target's keys and values of one sequence, for a draft that is some of its layers: those of
/// all positions but the last are there. Borrows both.
struct TargetKv {
  KvStore* store = nullptr;  ///< Null: not offered.
  const SequenceKv* sequence = nullptr;
};

/// What a drafter may look at for one sequence, and where its proposal goes.
struct DraftContext {
  SequenceId sequence = 0;
  std::span<const Token> tokens;  ///< Everything committed; the last one is the proposal's root.
  const SamplingParams* sampling = nullptr;
  const TokenHistory* history = nullptr;
  TapRows taps;  ///< What the target has kept of all positions but the last one.
  TargetKv target_kv;
  std::span<const Token> prediction;     ///< What the output may turn out to be; empty: unknown.
  DatastoreTenant* datastore = nullptr;  ///< Where retrieval may look; null: nowhere.
  /// Texts of sequences of another number may not show in the proposal (Request::prefix_scope).
  std::uint64_t scope = 0;
  int lookahead = 0;   ///< At most this many tokens along one path.
  int tree_width = 1;  ///< At most this many children of a node, for drafters that rank tokens.
  int max_nodes = 0;   ///< At most this many tokens in all.
  int window = 0;      ///< W and G of mode lookahead.
  int guesses = 0;
  /// What its first, second ... token costs, in tokens (RowPrice), for drafters that know their
  /// tokens' chances; beyond the last as the last. Empty: as many tokens as there may be.
  std::span<const double> row_prices;
  Proposal* proposal = nullptr;
  /// Null where the proposal is verified by shared noise: then it may be anything. Else its tokens
  /// must have been drawn from the distributions that the drafter sets here (empty when it is
  /// called), or be fixed by the context (a point mass, which needs no distribution). Whether and
  /// where a token is proposed may then not depend on what is drawn there.
  DraftDistributions* distributions = nullptr;
};

/// What a pass of the target said of a sequence's proposal, before it is committed.
struct VerifiedProposal {
  SequenceId sequence = 0;
  std::span<const Token> tokens;  ///< Committed before the pass; the last one is the root.
  const Proposal* proposal = nullptr;
  Outcome outcome;
  /// Rows [proposal nodes + 1, vocabulary], the root's first: what follows each node, accepted or
  /// not. Valid during the call.
  Logits logits;
  /// Greedy under rejection verification: a guess by the noise of a position would depend on what
  /// is drawn there.
  const SamplingParams* sampling = nullptr;
  const TokenHistory* history = nullptr;
  std::uint64_t scope = 0;  ///< As DraftContext's.
};

/// A sequence's text, once it has ended.
struct EndedText {
  std::span<const Token> tokens;
  std::size_t prompt = 0;   ///< Tokens of it.
  std::uint64_t scope = 0;  ///< As DraftContext's.
};

/// Context in, proposal out. What is emitted does not depend on it, nor does its distribution
/// under rejection verification. Not thread-safe.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// Fills the proposal of every context; an empty proposal is a valid answer.
  virtual void Propose(std::span<DraftContext> contexts) = 0;

  /// A pass has verified a proposal of this drafter, the empty one too. For those that learn from
  /// what the target said.
  virtual void Observe(const VerifiedProposal& /*verified*/) {}

  /// The sequence has ended or is drafted for otherwise: its state may go, where there is any.
  virtual void Forget(SequenceId /*sequence*/) {}

  /// A text has ended, whoever drafted for it. For those whose proposals show what others wrote.
  virtual void Remember(const EndedText& /*text*/) {}
};

}  // namespace foretoken
