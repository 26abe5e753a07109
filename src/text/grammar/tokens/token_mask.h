#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretoken/types.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/span_interner.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/tokens/token_trie.h"
#include "text/grammar/unique/drop_repeats.h"

namespace foretoken {

/// What a frame (threads of one rule, called from anywhere) lets through.
struct FrameMask {
  std::vector<std::uint64_t> bits;  ///< One per token, where there are many; else empty.
  std::vector<Token> tokens;        ///< Else.
  /// Trie nodes below which tokens go on after the rule's end: that depends on the caller.
  std::vector<std::int32_t> exits;
  std::int64_t steps = 0;  ///< TokenMask::steps that making it takes.
};

/// The masks of frames by the places of their threads, kept within bounds.
class FrameMasks {
 public:
  /// nullptr where it is not known.
  std::shared_ptr<const FrameMask> Find(std::span<const ProgramCounter> counters);
  std::shared_ptr<const FrameMask> Add(std::span<const ProgramCounter> counters, FrameMask mask);

 private:
  SpanInterner<ProgramCounter> keys_;
  std::vector<std::shared_ptr<const FrameMask>> masks_;  // Null: was looked for in vain.
  std::size_t bytes_ = 0;
};

/// The tokens of one model, as constraints see them.
struct ConstraintVocabulary {
  TokenTrie trie;
  std::vector<Token> end_tokens;  ///< End of sequence: allowed where the text may end.
  RepeatTokens repeats = RepeatTokens(trie);
};

/// Which tokens may follow in one state of a grammar. Made in as many pieces as one likes, since it
/// may take long.
///
/// A state's mask is put together from those of its frames, the threads of each context. They are
/// the same wherever a rule is called from; only tokens that reach beyond its end must be looked at
/// again.
class TokenMask {
 public:
  using State = StateGraph::State;
  /// At the start of a text whose first space is not shown.
  static constexpr State kBeforeSpace = -1;
  /// A mask that takes more steps is refused: one for each place in the tree of tokens, and the
  /// StateGraph's for each transition that is not cheap.
  static constexpr std::int64_t kMaxSteps = 1 << 23;

  /// What all masks of a constraint share.
  struct Parts {
    const Automaton* automaton;
    const ConstraintVocabulary* vocabulary;
    FrameMasks* frames;
  };

  /// The mask of `state` of `graph`.
  TokenMask(const Parts& parts, std::shared_ptr<StateGraph> graph, State state);

  /// Goes on for about `steps` steps of work, however many count for kMaxSteps, and returns how
  /// many it took.
  std::int64_t Continue(std::int64_t steps);

  bool done() const { return graph_ == nullptr; }
  /// Once it is done: it took too many steps, or the grammar is so ambiguous that nothing follows.
  bool refused() const { return refused_; }
  /// Once it is done: one bit per token, from the lowest of the first word on. None if refused.
  std::span<const std::uint64_t> bits() const { return bits_; }
  /// The steps that count for kMaxSteps: the same wherever and whenever the mask of this state is
  /// made.
  std::int64_t steps() const { return steps_; }

 private:
  struct Span {
    int begin = 0;
    int end = 0;
  };

  void AddBeforeSpace();
  void BeginWalk(Span span);
  bool Walk(std::int64_t spent_limit);
  template <typename Take>
  bool Walk(std::int64_t spent_limit, std::vector<bool>* counted, Take take);
  std::int64_t NodesLeft(std::int64_t spent_limit) const;
  bool LetsAllThrough(int node, State state, std::vector<bool>* counted);
  State FollowCostly(State before, std::uint8_t byte, std::vector<bool>* counted);
  bool TakeFrame();
  void CompleteFrame();
  void AddFrame(const FrameMask& frame);
  void Finish();
  void Refuse();
  void Leave();

  const Parts parts_;
  const State state_;
  std::shared_ptr<StateGraph> graph_;  // Null once the mask is done.
  std::vector<std::uint64_t> bits_;
  std::int64_t steps_ = 0;
  std::int64_t walked_ = 0;  // Nodes of the trie.
  bool refused_ = false;

  // The threads of the state, from thread_ on to be looked at.
  std::vector<GrammarThread> threads_;
  std::size_t thread_ = 0;
  CallContext context_ = 0;               // The context of the frame at hand.
  std::vector<ProgramCounter> counters_;  // The counters of the frame at hand.
  std::shared_ptr<FrameMask> building_;   // Its mask where it was not known.
  std::int64_t building_from_ = 0;        // steps_ when it was begun.
  std::vector<Span> taken_;               // Runs of nodes whose tokens it lets through.

  std::vector<Span>
      spans_;  // Runs of subtrees of the trie to be walked from from_, the last first.
  State from_ = StateGraph::kDead;
  Span walk_;                // Where the walk stands.
  std::vector<State> path_;  // Its states by depth.
  // What the walk has found: these characters lead from loop_ back to it. Nothing that another has
  // found counts here, so that steps_ does not depend on it.
  State loop_ = StateGraph::kDead;
  CharacterKinds loop_kinds_ = kNoKinds;
  // Transitions that were counted: for the frame that is being made, and for the mask itself.
  std::vector<bool> counted_in_frame_;
  std::vector<bool> counted_;
};

}  // namespace foretoken
