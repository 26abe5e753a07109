#include "text/grammar/automaton/uniform_steps.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "text/grammar/automaton/writable.h"

namespace foretoken {
namespace {

// Characters that stand for all: where the first of them that may follow leads, others should.
constexpr std::uint8_t kProbes[] = {'e', '0', 'E'};

const std::vector<ByteSequence>& WideSequences() {
  static const std::vector<ByteSequence> sequences = [] {
    auto low = Utf8Sequences({0x80, 0xD7FF});
    const auto high = Utf8Sequences({0xE000, kLastCodePoint});
    low.insert(low.end(), high.begin(), high.end());
    return low;
  }();
  return sequences;
}

}  // namespace

UniformSteps::Answer UniformSteps::LetThrough(State state, CharacterKinds kinds, int length) {
  Answer answer;
  const State first = state;
  if ((kinds & kBrokenKind) != 0) return answer;
  for (; length > 0; --length) {
    Step& step = StepOf(state);
    const State to = step.to == kUnknown ? FindTarget(state, &answer) : step.to;
    if (to == StateGraph::kDead) return answer;
    // In a fixed order, so that what is found costly does not depend on what was asked before.
    for (CharacterKinds left = kinds & ~step.alike; left != 0; left &= left - 1) {
      const CharacterKinds kind = left & -left;
      if ((step.unlike & kind) != 0) return answer;
      const bool leads = Leads(state, kind, to, &answer);
      if (answer.costly.has_value()) return answer;
      (leads ? step.alike : step.unlike) |= kind;
      if (!leads) return answer;
    }
    if (to == state) {  // Then so it is for all the rest.
      answer.loops = state == first;
      break;
    }
    state = to;
  }
  answer.all = true;
  return answer;
}

UniformSteps::Step& UniformSteps::StepOf(State state) {
  const std::size_t index = state;
  if (index >= steps_.size()) steps_.resize(index + 1);
  return steps_[index];
}

// Where the characters of a state that are alike lead; kDead where there is no such place.
UniformSteps::State UniformSteps::FindTarget(State state, Answer* answer) {
  State to = StateGraph::kDead;
  for (const std::uint8_t probe : kProbes) {
    to = Follow(state, probe, answer);
    if (answer->costly.has_value()) return StateGraph::kDead;
    if (to != StateGraph::kDead) break;
  }
  if (graph_->HasLeft(to)) to = StateGraph::kDead;
  return StepOf(state).to = to;
}

bool UniformSteps::Leads(State state, CharacterKinds kind, State to, Answer* answer) {
  if (kind == kWideKind) {
    return std::ranges::all_of(WideSequences(), [&](const ByteSequence& sequence) {
      return LeadsWide(state, sequence, to, answer);
    });
  }
  const ByteSet& writable = graph_->automaton().writable();
  return std::ranges::all_of(CharactersOf(kind), [&](std::uint8_t character) {
    return !writable[character] || Follow(state, character, answer) == to;
  });
}

// Whether all bytes of each range lead to one state, by the last to `to`.
bool UniformSteps::LeadsWide(State state, const ByteSequence& sequence, State to, Answer* answer) {
  const ByteSet& writable = graph_->automaton().writable();
  if (!HasWritable(sequence, writable)) return true;
  for (const ByteRange& range : sequence) {
    const auto ranges = WritableRanges(range, writable);
    const State next = Follow(state, ranges[0].first, answer);
    if (next == StateGraph::kDead || graph_->HasLeft(next)) return false;
    for (const ByteRange& bytes : ranges) {
      for (int byte = bytes.first; byte <= bytes.last; ++byte) {
        if (Follow(state, static_cast<std::uint8_t>(byte), answer) != next) return false;
      }
    }
    state = next;
  }
  return state == to;
}

// By one byte more; kDead where that is costly, which the answer then says.
UniformSteps::State UniformSteps::Follow(State state, std::uint8_t byte, Answer* answer) {
  const StateGraph::Transition taken = graph_->Follow(state, byte);
  if (taken.steps <= StateGraph::kCheapSteps) return taken.to;
  answer->costly = {state, byte};
  return StateGraph::kDead;
}

}  // namespace foretoken
