#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/constraint.h"
#include "foretoken/types.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/chat/reasoning_limit.h"
#include "text/grammar/tokens/token_mask.h"
#include "text/grammar/unique/unique_lists.h"

namespace foretoken {

/// A grammar over the tokens of a vocabulary. The grammar itself is immutable, but the constraint
/// learns its states and masks while it is used, so that its cursors belong to one thread.
class GrammarConstraint final : public TokenConstraint,
                                public std::enable_shared_from_this<GrammarConstraint> {
 public:
  /// Compiles `grammar` (ParseGrammar's notation). Characters with a byte that no token stands for
  /// alone are left out of it, so that a text that it lets begin can always be continued and ended,
  /// as long as it is not too ambiguous. Refuses, in one sentence, grammars that do not compile, of
  /// which that leaves nothing, and whose first mask takes too many steps.
  static Result<std::shared_ptr<GrammarConstraint>> Create(
      std::string grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary);

  const std::string& grammar() const override { return grammar_; }
  int vocabulary() const override { return vocabulary_->trie.vocabulary(); }
  std::unique_ptr<ConstraintCursor> NewCursor(bool drops_space) override;

 private:
  friend class GrammarCursor;
  using State = StateGraph::State;

  static constexpr State kBeforeSpace = TokenMask::kBeforeSpace;

  GrammarConstraint(std::string grammar, Automaton automaton,
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
  std::size_t brought_bytes_ = 0;      // Bytes that cursors have brought into it.
  FrameMasks frames_;
  struct KnownMask {
    State state = StateGraph::kDead;
    std::shared_ptr<TokenMask> mask;
  };
  std::vector<KnownMask> masks_;  // Masks of graph_'s states.
};

/// Where one sequence stands in its grammar. Copying forks it.
///
/// What one token and what all the tokens of a sequence may take is limited. The limits are on
/// steps (StateGraph) that the output alone determines: where a sequence ends by them does not
/// depend on what else was looked at.
class GrammarCursor final : public ConstraintCursor {
 public:
  /// The most steps that the bytes of one token may take.
  static constexpr std::int64_t kMaxTokenSteps = 1 << 18;
  /// The most steps of all masks that tokens were chosen under, without the first kFreeSteps of
  /// each.
  static constexpr std::int64_t kMaxSequenceSteps = std::int64_t{1} << 29;
  static constexpr std::int64_t kFreeSteps = 1 << 20;

  GrammarCursor(std::shared_ptr<GrammarConstraint> constraint, bool drops_space);

  std::unique_ptr<ConstraintCursor> Clone() const override {
    return std::make_unique<GrammarCursor>(*this);
  }
  bool drops_space() const override { return drops_space_; }
  void Push(Token token) override;
  bool Prepare(std::span<const Token> path, std::int64_t* steps) const override;
  bool Refused(std::span<const Token> path) const override;
  std::span<const std::uint64_t> Mask(std::span<const Token> path) const override;
  bool MayEnd() const override { return constraint_->MayEnd(State()); }
  bool MayContinue() const override { return constraint_->MayContinue(State()); }

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

  std::shared_ptr<GrammarConstraint> constraint_;
  bool drops_space_;
  std::int64_t steps_ = 0;  // Steps that count for kMaxSequenceSteps.
  // The graph that the rest belongs to; the constraint may have another one by now. Null: nothing
  // was pushed or asked.
  mutable std::shared_ptr<StateGraph> graph_;
  mutable StateGraph::State state_ = StateGraph::kDead;
  mutable std::vector<HeldMask> held_;          // Asked for since the root's was last asked for.
  UniqueLists lists_;                           // At the end of the output.
  std::optional<ReasoningCursor> reasoning_;    // At the end of the output.
  mutable std::vector<FilteredMask> filtered_;  // Asked for since the last token.
};

}  // namespace foretoken
