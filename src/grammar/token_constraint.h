#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/types.h"
#include "grammar/automaton.h"
#include "grammar/state_graph.h"
#include "grammar/token_trie.h"

namespace foretoken {

/// The tokens of one model, as constraints see them.
struct ConstraintVocabulary {
  TokenTrie trie;
  std::vector<Token> end_tokens;  ///< End of sequence: allowed where the text may end.
};

/// A grammar over the tokens of a vocabulary: which tokens may come next. Shared by all sequences
/// that obey the same grammar; each has a ConstraintCursor.
///
/// The grammar itself is immutable, so a constraint may be made on one thread and used on another,
/// but it learns its states and masks while it is used: cursors of one constraint belong to one
/// thread.
class TokenConstraint {
 public:
  /// Compiles `grammar` (ParseGrammar's notation). Refuses, in one sentence, grammars that do not
  /// compile and vocabularies that lack a byte which the grammar may need: with all of them, a text
  /// that the grammar lets begin can always be continued and ended.
  static Result<std::shared_ptr<TokenConstraint>> Create(
      std::string grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary);

  const std::string& grammar() const { return grammar_; }
  int vocabulary() const { return vocabulary_->trie.vocabulary(); }

 private:
  friend class ConstraintCursor;
  using State = StateGraph::State;

  // At the start of a text whose first space is not shown.
  static constexpr State kBeforeSpace = -1;

  // What a frame (threads of one rule, called from anywhere) lets through.
  struct FrameMask {
    bool dense = false;
    std::vector<std::uint64_t> bits;  // If dense: one per token.
    std::vector<Token> tokens;        // If not.
    // Trie nodes below which tokens go on after the rule's end: that depends on the caller.
    std::vector<std::int32_t> exits;
  };
  struct CachedMask {
    State state = StateGraph::kDead;
    std::vector<std::uint64_t> bits;
  };

  TokenConstraint(std::string grammar, Automaton automaton,
                  std::shared_ptr<const ConstraintVocabulary> vocabulary);

  State Advance(State state, Token token);
  bool IsEndToken(Token token) const;
  bool MayEnd(State state) const;
  bool MayContinue(State state) const;
  std::span<const std::uint64_t> Mask(State state);
  void AddFrames(State state, std::vector<std::uint64_t>* mask);
  const FrameMask& Frame(std::span<const ProgramCounter> counters);
  template <typename Visit>
  void Walk(int begin, int end, State from, Visit visit);
  void AddWalk(int begin, int end, State from, std::vector<std::uint64_t>* mask);
  // Keeps the memory of what was learned within bounds. Ends all cursors' states.
  void Trim();

  std::string grammar_;
  Automaton automaton_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;
  std::size_t words_;  // Of a mask.

  StateGraph graph_;
  std::uint64_t epoch_ = 1;  // Of the graph's states.
  SpanInterner<ProgramCounter> frame_keys_;
  std::vector<std::unique_ptr<FrameMask>> frames_;
  std::size_t frame_bytes_ = 0;
  std::vector<CachedMask> cache_;
  std::vector<State> path_;  // Walk's states by depth.
  std::vector<ProgramCounter> counters_;
};

/// Where one sequence stands in its constraint: a function of its output so far. Copying forks it.
class ConstraintCursor {
 public:
  /// `drops_space`: the text is shown without a space at its very beginning, so none is counted.
  ConstraintCursor(std::shared_ptr<TokenConstraint> constraint, bool drops_space)
      : constraint_(std::move(constraint)), drops_space_(drops_space) {}

  const TokenConstraint& constraint() const { return *constraint_; }
  bool drops_space() const { return drops_space_; }

  /// The sequence goes on with `token`. A token that is not allowed, or anything after the end,
  /// leaves a text that nothing may follow.
  void Push(Token token);

  /// One bit per token, from the lowest of the first word on: which may follow the output and
  /// `path`. Valid until the constraint is used again.
  std::span<const std::uint64_t> Mask(std::span<const Token> path) const;

  /// The text may end here.
  bool MayEnd() const { return constraint_->MayEnd(State()); }
  /// A longer text may follow. With neither, a token was pushed that is not allowed, or the
  /// grammar is too ambiguous (StateGraph).
  bool MayContinue() const { return constraint_->MayContinue(State()); }

 private:
  StateGraph::State State() const;

  std::shared_ptr<TokenConstraint> constraint_;
  bool drops_space_;
  std::vector<Token> output_;
  // The state after output_, while the constraint's epoch is the same.
  mutable std::uint64_t epoch_ = 0;
  mutable StateGraph::State state_ = StateGraph::kDead;
};

}  // namespace foretoken
