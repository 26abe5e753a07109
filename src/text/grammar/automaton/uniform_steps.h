#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "text/grammar/automaton/character_kinds.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/automaton/state_graph.h"

namespace foretoken {

/// In a string, a name or a word nearly all characters lead on alike: back to the same state, or,
/// where they are counted, all to the next. What this knows of each state of a graph lets whole
/// subtrees of tokens through at once.
///
/// Only characters of bytes that the automaton's texts may have are asked about: others stand in no
/// token.
///
/// Answers are functions of the state's threads alone, whatever was asked before.
class UniformSteps {
 public:
  using State = StateGraph::State;

  /// `graph` outlives this.
  explicit UniformSteps(StateGraph* graph) : graph_(graph) {}

  struct Answer {
    bool all = false;
    bool loops = false;  ///< They lead back to the state: texts of any length go on.
    /// A transition that was too costly to find out.
    std::optional<std::pair<State, std::uint8_t>> costly = std::nullopt;
  };
  /// Whether it is known with little work that the grammar lets through every text of characters
  /// of `kinds` that can be written, of `length` bytes at most, and that no thread leaves kOpen on
  /// the way.
  Answer LetThrough(State state, CharacterKinds kinds, int length);
  /// Bytes held, about.
  std::size_t bytes() const { return steps_.size() * sizeof(Step); }

 private:
  static constexpr State kUnknown = -1;

  struct Step {
    State to = kUnknown;  ///< Where those that are alike lead.
    CharacterKinds alike = kNoKinds;
    CharacterKinds unlike = kNoKinds;
  };

  Step& StepOf(State state);
  State FindTarget(State state, Answer* answer);
  bool Leads(State state, CharacterKinds kind, State to, Answer* answer);
  bool LeadsWide(State state, const ByteSequence& sequence, State to, Answer* answer);
  State Follow(State state, std::uint8_t byte, Answer* answer);

  StateGraph* graph_;
  std::vector<Step> steps_;  // By state.
};

}  // namespace foretoken
