#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/numbers/integers.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/span_interner.h"

namespace foretoken {

class UniformSteps;

/// Where a called rule returns to: interned, shared by all that have the same callers.
using CallContext = std::int32_t;

/// One of the places where an automaton may be at once.
struct GrammarThread {
  CallContext context = 0;  ///< First, so that sorted threads of one context are adjacent.
  ProgramCounter counter = 0;
  friend auto operator<=>(const GrammarThread&, const GrammarThread&) = default;
};

/// The deterministic states of an automaton, made as they are reached and kept: a state is the set
/// of threads alive after some bytes. Calls of one rule from the same byte on share a context, a
/// set of threads in turn (a graph-structured stack), so ambiguity stays polynomial; calls in the
/// last place of a rule leave no trace, so lists need no stack.
///
/// Of threads in copies of one part, as in x{0,9}, only those with the most copies ahead are kept:
/// what the others let follow, they do, too.
///
/// What a grammar can still ask for is bounded: a text with more than kMaxContexts readings at once
/// (only grammars that read the same text in ever more ways have them) may not be continued, and
/// neither may one whose next byte takes more than kMaxByteSteps.
///
/// Work is counted in steps, about one per thread looked at. What a transition takes where it is
/// not known yet is a function of the text before it, whatever was asked before: limits on it are
/// the same wherever and whenever they are met. spent() is what was really done to make states.
///
/// States are small numbers: copying one forks it. Not thread-safe.
class StateGraph {
 public:
  using State = std::int32_t;
  static constexpr State kDead = 0;
  static constexpr int kMaxContexts = 128;  ///< The most contexts of a state's threads.
  static constexpr std::int64_t kMaxByteSteps = 1 << 17;
  static constexpr std::int64_t kCheapSteps = 64;
  static constexpr CallContext kBottom = 0;  ///< The root returns: the text may end.
  static constexpr CallContext kOpen = 1;    ///< The thread returns to where is not known.

  /// `automaton` outlives the graph.
  explicit StateGraph(const Automaton* automaton);
  ~StateGraph();

  const Automaton& automaton() const { return *automaton_; }

  /// Before the first byte.
  State start() const { return start_; }

  struct Transition {
    State to = kDead;  ///< kDead where no text goes on like that.
    std::int64_t steps = 1;
    bool begins_unique = false;  ///< A list whose items all differ.
  };
  /// By one byte more.
  Transition Follow(State state, std::uint8_t byte) {
    const std::int32_t known = transitions_[IndexOf(state, byte)];
    if (known < 0) return Compute(state, automaton_->ClassOf(byte));
    return {known & kStateMask, std::int64_t{1} << (known >> kStepsShift),
            (known & kBeginsUnique) != 0};
  }
  /// The same for what is known and takes no more than kCheapSteps; false elsewhere.
  bool FollowCheap(State state, std::uint8_t byte, State* to) const {
    const std::int32_t known = transitions_[IndexOf(state, byte)];
    *to = known & kStateMask;
    return static_cast<std::uint32_t>(known) < kFirstCostly;
  }
  /// Transitions are numbered: below transitions(), which grows with the states.
  std::size_t IndexOf(State state, std::uint8_t byte) const {
    return Size(state) * automaton_->classes() + automaton_->ClassOf(byte);
  }
  std::size_t transitions() const { return transitions_.size(); }

  State Next(State state, std::uint8_t byte) { return Follow(state, byte).to; }
  State Next(State state, std::string_view bytes);

  /// Whether the text may end in this state.
  bool MayEnd(State state) const { return traits_[state].may_end; }
  /// Whether a longer text has this state on its way.
  bool MayContinue(State state) const { return traits_[state].may_continue; }
  /// Whether a thread has returned out of kOpen.
  bool HasLeft(State state) const { return traits_[state].has_left; }

  /// The threads of a state, ascending; valid until a state is made.
  std::span<const GrammarThread> threads(State state) const { return states_[state]; }

  /// The state of threads at `counters`, all within one rule that returns to kOpen.
  State Within(std::span<const ProgramCounter> counters);
  /// The state after a return out of `context`.
  State Return(CallContext context);

  /// The same state as `state` of `other`, a graph of the same automaton.
  State Import(const StateGraph& other, State state);

  /// What was found out about characters that lead on alike.
  UniformSteps& uniform_steps() { return *uniform_steps_; }

  std::int64_t spent() const { return spent_; }
  /// Bytes held, about.
  std::size_t bytes() const;

 private:
  // A transition known: its state, whether it begins a list whose items all differ, and the steps
  // it takes, as a power of two that is no less.
  static constexpr std::int32_t kBeginsUnique = 1 << 25;
  static constexpr std::int32_t kStateMask = kBeginsUnique - 1;
  static constexpr int kStepsShift = 26;
  static constexpr std::uint32_t kFirstCostly = 7U << kStepsShift;
  static_assert(kCheapSteps == 1 << 6);

  struct Traits {
    bool may_end = false;
    bool may_continue = false;
    bool has_left = false;
  };

  Transition Compute(State state, int byte_class);
  State Intern();
  void DropDominated();
  void DropExcess();
  std::vector<CallContext> ContextsBehind(State state) const;
  bool StepTooMany();
  void Add(GrammarThread thread, bool at_entry);
  void Visit(GrammarThread thread, bool at_entry);
  void ExpandCalls(State state);
  bool Seen(GrammarThread thread);
  void ForgetSeen();

  const Automaton* automaton_;
  SpanInterner<GrammarThread> states_;
  SpanInterner<GrammarThread> contexts_;
  std::vector<Traits> traits_;
  std::vector<std::int32_t> transitions_;  // [states, byte classes]; -1: not computed yet.
  State start_ = 0;
  std::unique_ptr<UniformSteps> uniform_steps_;

  std::int64_t spent_ = 0;

  // Scratch.
  std::int64_t steps_ = 0;              // The steps of the set being made.
  std::vector<GrammarThread> threads_;  // The set being made.
  std::vector<GrammarThread> todo_;
  struct Copy {  // A thread within a run of copies.
    CallContext context = 0;
    int run = 0;
    int offset = 0;
    ProgramCounter counter = 0;
    friend auto operator<=>(const Copy&, const Copy&) = default;
  };
  std::vector<Copy> copies_;
  State expanded_ = -1;
  std::int64_t expansion_steps_ = 0;
  std::vector<GrammarThread> expansion_;             // The threads of expanded_, calls followed.
  std::vector<std::vector<GrammarThread>> callers_;  // By rule.
  std::vector<std::uint64_t> seen_;                  // Open addressing; 0 is free.
  std::size_t seen_count_ = 0;
};

}  // namespace foretoken
