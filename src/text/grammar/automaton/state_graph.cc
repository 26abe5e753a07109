#include "text/grammar/automaton/state_graph.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/check.h"
#include "text/grammar/automaton/uniform_steps.h"

namespace foretoken {
namespace {

using Op = Instruction::Op;

constexpr std::size_t kSmallSeen = 64;

}  // namespace

StateGraph::StateGraph(const Automaton* automaton)
    : automaton_(automaton),
      uniform_steps_(std::make_unique<UniformSteps>(this)),
      callers_(automaton->rules()),
      seen_(kSmallSeen, 0) {
  const GrammarThread bottom{.context = kBottom, .counter = Automaton::kEnd};
  const GrammarThread open{.context = kOpen, .counter = Automaton::kHole};
  contexts_.Intern({&bottom, 1});
  contexts_.Intern({&open, 1});
  Intern();
  // The root is called once from outside.
  Add({.context = kBottom, .counter = automaton_->entry(automaton_->root())}, /*at_entry=*/false);
  start_ = Intern();
}

StateGraph::~StateGraph() = default;

std::size_t StateGraph::bytes() const {
  return states_.bytes() + contexts_.bytes() + transitions_.size() * sizeof(std::int32_t) +
         uniform_steps_->bytes();
}

StateGraph::State StateGraph::Next(State state, std::string_view bytes) {
  for (const char byte : bytes) state = Next(state, static_cast<std::uint8_t>(byte));
  return state;
}

StateGraph::State StateGraph::Within(std::span<const ProgramCounter> counters) {
  for (const ProgramCounter counter : counters) {
    Add({.context = kOpen, .counter = counter}, /*at_entry=*/false);
  }
  return Intern();
}

StateGraph::State StateGraph::Return(CallContext context) {
  Add({.context = context, .counter = Automaton::kReturn}, /*at_entry=*/false);
  return Intern();
}

StateGraph::State StateGraph::Import(const StateGraph& other, State state) {
  // Contexts are numbered behind those they lead to.
  std::unordered_map<CallContext, CallContext> known;
  std::vector<GrammarThread> threads;
  const auto translate = [&](std::span<const GrammarThread> from) {
    threads.assign(from.begin(), from.end());
    for (GrammarThread& thread : threads) thread.context = known.at(thread.context);
    std::sort(threads.begin(), threads.end());
  };
  for (const CallContext context : other.ContextsBehind(state)) {
    if (context == kBottom || context == kOpen) {
      known[context] = context;
      continue;
    }
    translate(other.contexts_[context]);
    known[context] = contexts_.Intern(threads);
  }
  translate(other.states_[state]);
  threads_ = threads;
  steps_ = 0;
  return Intern();
}

// The contexts that a state's threads may return to, ascending.
std::vector<CallContext> StateGraph::ContextsBehind(State state) const {
  std::vector<bool> seen(contexts_.size(), false);
  std::vector<CallContext> found;
  const auto note = [&](std::span<const GrammarThread> threads) {
    for (const GrammarThread& thread : threads) {
      if (seen[thread.context]) continue;
      seen[thread.context] = true;
      found.push_back(thread.context);
    }
  };
  note(states_[state]);
  for (std::size_t i = 0; i < found.size(); ++i) note(contexts_[found[i]]);
  std::sort(found.begin(), found.end());
  return found;
}

StateGraph::Transition StateGraph::Compute(State state, int byte_class) {
  if (expanded_ != state) ExpandCalls(state);
  steps_ = expansion_steps_;
  const std::uint8_t byte = automaton_->ByteOfClass(byte_class);
  bool begins_unique = false;
  for (const GrammarThread& thread : expansion_) {
    const Instruction& instruction = automaton_->at(thread.counter);
    if (instruction.op == Op::kBytes && instruction.first <= byte && byte <= instruction.last) {
      Add({.context = thread.context, .counter = instruction.next}, /*at_entry=*/false);
      begins_unique = begins_unique || instruction.operand == Instruction::kBeginsUnique;
    }
  }
  const int log_steps = std::bit_width(static_cast<std::uint64_t>(steps_ - 1));
  const State next = Intern();
  FT_CHECK(next <= kStateMask, "{} states", next);
  transitions_[Size(state) * automaton_->classes() + byte_class] =
      log_steps << kStepsShift | (begins_unique ? kBeginsUnique : 0) | next;
  return {next, std::int64_t{1} << log_steps, begins_unique};
}

// Makes the set of threads that have been added a state.
StateGraph::State StateGraph::Intern() {
  ForgetSeen();
  spent_ += steps_;
  // What was left out when there were too many depends on the order in which contexts were made.
  if (StepTooMany()) threads_.clear();
  std::sort(threads_.begin(), threads_.end());
  DropDominated();
  DropExcess();
  bool added = false;
  const State state = states_.Intern(threads_, &added);
  if (added) {
    Traits traits;
    for (const GrammarThread& thread : threads_) {
      const Op op = automaton_->at(thread.counter).op;
      traits.may_end = traits.may_end || op == Op::kEnd;
      traits.has_left = traits.has_left || op == Op::kHole;
      traits.may_continue = traits.may_continue || op == Op::kBytes || op == Op::kCall;
    }
    traits_.push_back(traits);
    transitions_.resize(transitions_.size() + automaton_->classes(), -1);
  }
  threads_.clear();
  steps_ = 0;
  return state;
}

bool StateGraph::StepTooMany() { return steps_ > kMaxByteSteps; }

// Drops threads for which there is one of the same caller, at the same place of a copy with more
// copies ahead. The first copies have the highest counters.
void StateGraph::DropDominated() {
  if (threads_.size() < 2 || automaton_->runs() == 0) return;
  copies_.clear();
  for (const GrammarThread& thread : threads_) {
    for (int run = automaton_->RunOf(thread.counter); run >= 0; run = automaton_->run(run).outer) {
      const Automaton::Run& copies = automaton_->run(run);
      copies_.push_back(
          {thread.context, run, (thread.counter - copies.begin) % copies.stride, thread.counter});
    }
  }
  if (copies_.size() < 2) return;
  std::sort(copies_.begin(), copies_.end());
  std::vector<GrammarThread> dominated;
  for (std::size_t i = 0; i + 1 < copies_.size(); ++i) {
    const Copy& here = copies_[i];
    const Copy& next = copies_[i + 1];
    if (here.context == next.context && here.run == next.run && here.offset == next.offset) {
      dominated.push_back({here.context, here.counter});
    }
  }
  if (dominated.empty()) return;
  std::sort(dominated.begin(), dominated.end());
  std::erase_if(threads_, [&](const GrammarThread& thread) {
    return std::binary_search(dominated.begin(), dominated.end(), thread);
  });
}

void StateGraph::DropExcess() {
  int contexts = 0;
  CallContext last = -1;
  for (const GrammarThread& thread : threads_) {
    contexts += thread.context != last ? 1 : 0;
    last = thread.context;
  }
  if (contexts <= kMaxContexts) return;
  std::erase_if(threads_, [&](const GrammarThread& thread) {
    return automaton_->at(thread.counter).op != Op::kEnd;
  });
}

// Adds a thread and those it stands for: splits go both ways, returns go to all callers, and calls
// of rules that match the empty text also go on behind it. At the entry of a rule a return is left
// out, since that last case has dealt with it.
void StateGraph::Add(GrammarThread thread, bool at_entry) {
  todo_.push_back(thread);
  while (!todo_.empty()) {
    const GrammarThread next = todo_.back();
    todo_.pop_back();
    if (StepTooMany()) continue;
    ++steps_;
    if (!Seen(next)) Visit(next, at_entry);
  }
}

void StateGraph::Visit(GrammarThread thread, bool at_entry) {
  const Instruction& instruction = automaton_->at(thread.counter);
  switch (instruction.op) {
    case Op::kSplit:
      todo_.push_back({thread.context, instruction.next});
      todo_.push_back({thread.context, instruction.operand});
      break;
    case Op::kReturn:
      if (at_entry) break;
      for (const GrammarThread& caller : contexts_[thread.context]) todo_.push_back(caller);
      break;
    case Op::kCall:
      if (automaton_->nullable(instruction.operand)) {
        todo_.push_back({thread.context, instruction.next});
      }
      threads_.push_back(thread);
      break;
    default:
      threads_.push_back(thread);
  }
}

// Follows the calls of a state's threads to the entries of the rules. A rule's callers are all
// known when its turn comes, since rules are taken in the order of their calls.
void StateGraph::ExpandCalls(State state) {
  const auto own = states_[state];
  expansion_.assign(own.begin(), own.end());
  expanded_ = state;
  steps_ = 1 + std::ssize(own);
  const auto note_calls = [&](std::span<const GrammarThread> threads) {
    bool any = false;
    for (const GrammarThread& thread : threads) {
      const Instruction& call = automaton_->at(thread.counter);
      if (call.op != Op::kCall) continue;
      any = true;
      auto& callers = callers_[call.operand];
      if (call.next == Automaton::kReturn) {
        const auto outer = contexts_[thread.context];
        steps_ += std::ssize(outer);
        if (StepTooMany()) return any;
        callers.insert(callers.end(), outer.begin(), outer.end());
      } else {
        callers.push_back({thread.context, call.next});
      }
    }
    return any;
  };
  const bool calls = note_calls(expansion_);
  if (calls) steps_ += std::ssize(automaton_->call_order()) / 16;
  for (const int rule : calls ? automaton_->call_order() : std::span<const int>()) {
    auto& callers = callers_[rule];
    if (callers.empty()) continue;
    std::sort(callers.begin(), callers.end());
    callers.erase(std::unique(callers.begin(), callers.end()), callers.end());
    const CallContext context = contexts_.Intern(callers);
    callers.clear();
    Add({.context = context, .counter = automaton_->entry(rule)}, /*at_entry=*/true);
    note_calls(threads_);
    expansion_.insert(expansion_.end(), threads_.begin(), threads_.end());
    threads_.clear();
    ForgetSeen();
  }
  if (StepTooMany()) expansion_.clear();
  expansion_steps_ = steps_;
  spent_ += steps_;
}

// Whether the thread was there before; it is from now on.
bool StateGraph::Seen(GrammarThread thread) {
  if (2 * seen_count_ >= seen_.size()) {
    std::vector<std::uint64_t> old(2 * seen_.size(), 0);
    old.swap(seen_);
    for (const std::uint64_t key : old) {
      if (key == 0) continue;
      std::size_t slot = (key * 0x9E3779B97F4A7C15U) >> 20 & (seen_.size() - 1);
      while (seen_[slot] != 0) slot = (slot + 1) & (seen_.size() - 1);
      seen_[slot] = key;
    }
  }
  const std::uint64_t key = (std::uint64_t{static_cast<std::uint32_t>(thread.context)} << 32 |
                             static_cast<std::uint32_t>(thread.counter)) +
                            1;
  std::size_t slot = (key * 0x9E3779B97F4A7C15U) >> 20 & (seen_.size() - 1);
  for (; seen_[slot] != 0; slot = (slot + 1) & (seen_.size() - 1)) {
    if (seen_[slot] == key) return true;
  }
  seen_[slot] = key;
  ++seen_count_;
  return false;
}

void StateGraph::ForgetSeen() {
  if (seen_count_ == 0) return;
  if (seen_.size() > kSmallSeen && seen_count_ < kSmallSeen / 2) seen_.resize(kSmallSeen);
  std::fill(seen_.begin(), seen_.end(), 0);
  seen_count_ = 0;
}

}  // namespace foretoken
