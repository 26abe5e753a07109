#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/types.h"
#include "grammar/automaton.h"
#include "grammar/chat/reasoning_limit.h"
#include "grammar/state_graph.h"
#include "grammar/token_mask.h"
#include "grammar/unique/unique_lists.h"

namespace foretoken {

/// A grammar over the tokens of a vocabulary: which tokens may come next. Shared by all sequences
/// that obey the same grammar; each has a ConstraintCursor.
///
/// The grammar itself is immutable, so a constraint may be made on one thread and used on another,
/// but it learns its states and masks while it is used: cursors of one constraint belong to one
/// thread.
class TokenConstraint {
 public:
  /// Compiles `grammar` (ParseGrammar's notation). Characters with a byte that no token stands for
  /// alone are left out of it, so that a text that it lets begin can always be continued and ended,
  /// as long as it is not too ambiguous. Refuses, in one sentence, grammars that do not compile, of
  /// which that leaves nothing, and whose first mask takes too many steps.
  static Result<std::shared_ptr<TokenConstraint>> Create(
      std::string grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary);

  const std::string& grammar() const { return grammar_; }
  int vocabulary() const { return vocabulary_->trie.vocabulary(); }

 private:
  friend class ConstraintCursor;
  using State = StateGraph::State;

  static constexpr State kBeforeSpace = TokenMask::kBeforeSpace;

  TokenConstraint(std::string grammar, Automaton automaton,
                  std::optional<TokenReasoningLimit> reasoning,
                  std::shared_ptr<const ConstraintVocabulary> vocabulary);

  // `lists` goes on as well; null: there are none.
  State Advance(State state, Token token, UniqueLists* lists);
  bool MayEnd(State state) const;
  bool MayContinue(State state) const;
  // Perhaps unfinished.
  const std::shared_ptr<TokenMask>& MaskOf(State state);
  // Keeps the memory of what was learned within bounds: graph_ may be another one afterwards.
  void Trim();

  std::string grammar_;
  Automaton automaton_;
  std::optional<TokenReasoningLimit> reasoning_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;

  std::shared_ptr<StateGraph> graph_;  // Never null; shared with cursors that have yet to leave it.
  std::size_t brought_bytes_ = 0;      // That cursors have brought into it.
  FrameMasks frames_;
  struct KnownMask {
    State state = StateGraph::kDead;
    std::shared_ptr<TokenMask> mask;
  };
  std::vector<KnownMask> masks_;  // Of graph_'s states.
};

/// Where one sequence stands in its constraint: a function of its output so far. Copying forks it.
///
/// What one token and what all the tokens of a sequence may take is limited. The limits are on
/// steps (StateGraph) that the output alone determines: where a sequence ends by them does not
/// depend on what else was looked at.
class ConstraintCursor {
 public:
  /// Of a token's bytes.
  static constexpr std::int64_t kMaxTokenSteps = 1 << 18;
  /// Of all masks that tokens were chosen under, without the first kFreeSteps of each.
  static constexpr std::int64_t kMaxSequenceSteps = std::int64_t{1} << 29;
  static constexpr std::int64_t kFreeSteps = 1 << 20;

  /// `drops_space`: the text is shown without a space at its very beginning, so none is counted.
  ConstraintCursor(std::shared_ptr<TokenConstraint> constraint, bool drops_space);

  const TokenConstraint& constraint() const { return *constraint_; }
  bool drops_space() const { return drops_space_; }

  /// The sequence goes on with `token`. A token that is not allowed, or anything after the end,
  /// leaves a text that nothing may follow.
  void Push(Token token);

  /// Works on the mask after the output and `path` for about `*steps` steps, less those it took
  /// afterwards. True once it is there: Mask then costs nothing.
  bool Prepare(std::span<const Token> path, std::int64_t* steps) const;
  /// Whether a mask that is there was refused: the grammar is too ambiguous to go on.
  bool Refused(std::span<const Token> path) const;

  /// One bit per token, from the lowest of the first word on: which may follow the output and
  /// `path`; none where the mask is refused. Valid until the constraint is used again.
  std::span<const std::uint64_t> Mask(std::span<const Token> path) const;

  /// The text may end here.
  bool MayEnd() const { return constraint_->MayEnd(State()); }
  /// A longer text may follow. With neither, a token was pushed that is not allowed, or the
  /// grammar is too ambiguous.
  bool MayContinue() const { return constraint_->MayContinue(State()); }

 private:
  struct HeldMask {
    StateGraph::State state = StateGraph::kDead;
    std::shared_ptr<TokenMask> mask;
  };

  // The mask of the state after a path, without the tokens that repeat an item of a list, and
  // those that go on with thoughts that must end.
  struct FilteredMask {
    std::vector<Token> path;
    std::vector<std::uint64_t> bits;
    std::int64_t steps = 0;
  };

  StateGraph::State State() const;
  std::vector<FilteredMask>::iterator FindFiltered(std::span<const Token> path) const;
  const FilteredMask& FilteredAfter(std::span<const Token> path) const;
  std::optional<ReasoningCursor> ReasoningAfter(std::span<const Token> path) const;
  bool IsFiltered(std::span<const Token> path) const;
  const std::shared_ptr<TokenMask>& MaskAfter(std::span<const Token> path) const;

  std::shared_ptr<TokenConstraint> constraint_;
  bool drops_space_;
  std::int64_t steps_ = 0;  // Of kMaxSequenceSteps.
  // The graph that the rest belongs to; the constraint may have another one by now. Null: nothing
  // was pushed or asked.
  mutable std::shared_ptr<StateGraph> graph_;
  mutable StateGraph::State state_ = StateGraph::kDead;
  mutable std::vector<HeldMask> held_;          // Asked for since the root's was last asked for.
  UniqueLists lists_;                           // At the end of the output.
  std::optional<ReasoningCursor> reasoning_;    // Likewise.
  mutable std::vector<FilteredMask> filtered_;  // Asked for since the last token.
};

}  // namespace foretoken
