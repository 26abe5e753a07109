#include "text/grammar/tokens/grammar_constraint.h"

#include <algorithm>
#include <limits>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr std::size_t kKnownMasks = 64;
constexpr std::size_t kMaxGraphBytes = 16 << 20;

// Leaves those of `tokens` that go on where thoughts must end: the next of what ends them, or
// what ends the character at hand and has nothing behind it.
void EndThoughts(const ReasoningCursor& cursor, const TokenTrie& trie,
                 std::span<std::uint64_t> tokens) {
  const std::optional<Token> next = cursor.next();
  const auto ends_character = [&](Token token) {
    return std::ranges::all_of(trie.BytesOf(token), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    });
  };
  for (Token token = 0; token < trie.vocabulary(); ++token) {
    std::uint64_t& word = tokens[Size(token) / 64];
    const std::uint64_t bit = std::uint64_t{1} << (token % 64);
    if ((word & bit) == 0) continue;
    const bool stays = next.has_value() ? token == *next : ends_character(token);
    if (!stays || trie.BytesOf(token).empty()) word &= ~bit;
  }
}

}  // namespace

Result<std::shared_ptr<GrammarConstraint>> GrammarConstraint::Create(
    std::string grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary) {
  FT_ASSIGN_OR_RETURN(const Grammar parsed, ParseGrammar(grammar));
  FT_ASSIGN_OR_RETURN(Automaton automaton, Automaton::Compile(parsed, vocabulary->trie.depth(),
                                                              vocabulary->trie.bytes()));
  std::optional<TokenReasoningLimit> reasoning;
  if (parsed.reasoning.has_value()) {
    FT_ASSIGN_OR_RETURN(reasoning,
                        TokenReasoningLimit::Create(*parsed.reasoning, vocabulary->trie));
  }
  const std::shared_ptr<GrammarConstraint> constraint(new GrammarConstraint(
      std::move(grammar), std::move(automaton), std::move(reasoning), std::move(vocabulary)));
  // Made here, the first mask keeps no round waiting.
  TokenMask& first = *constraint->MaskOf(constraint->graph_->start());
  first.Continue(std::numeric_limits<std::int64_t>::max() / 2);
  if (first.refused() || constraint->graph_->start() == StateGraph::kDead) {
    return InvalidInput(
        "the grammar is too ambiguous: already its first character can be read in too many ways; "
        "write fewer alternatives and optional parts that may begin alike");
  }
  return constraint;
}

GrammarConstraint::GrammarConstraint(std::string grammar, Automaton automaton,
                                     std::optional<TokenReasoningLimit> reasoning,
                                     std::shared_ptr<const ConstraintVocabulary> vocabulary)
    : grammar_(std::move(grammar)),
      automaton_(std::move(automaton)),
      reasoning_(std::move(reasoning)),
      vocabulary_(std::move(vocabulary)),
      graph_(std::make_shared<StateGraph>(&automaton_)),
      masks_(kKnownMasks) {}

std::unique_ptr<ConstraintCursor> GrammarConstraint::NewCursor(bool drops_space) {
  return std::make_unique<GrammarCursor>(shared_from_this(), drops_space);
}

GrammarConstraint::State GrammarConstraint::Advance(State state, Token token, UniqueLists* lists) {
  if (token < 0 || token >= vocabulary()) return StateGraph::kDead;
  std::string_view bytes = vocabulary_->trie.BytesOf(token);
  if (bytes.empty()) return StateGraph::kDead;
  if (state == kBeforeSpace) {
    state = graph_->start();
    if (bytes.front() == ' ') bytes.remove_prefix(1);
  }
  std::int64_t steps = 0;
  for (const char byte : bytes) {
    const StateGraph::Transition taken = graph_->Follow(state, static_cast<std::uint8_t>(byte));
    steps += taken.steps;
    if (steps > GrammarCursor::kMaxTokenSteps) return StateGraph::kDead;
    if (lists != nullptr && !lists->Push(static_cast<std::uint8_t>(byte), taken.begins_unique)) {
      return StateGraph::kDead;
    }
    state = taken.to;
  }
  return state;
}

bool GrammarConstraint::MayEnd(State state) const {
  return graph_->MayEnd(state == kBeforeSpace ? graph_->start() : state);
}

bool GrammarConstraint::MayContinue(State state) const {
  return state == kBeforeSpace || graph_->MayContinue(state);  // With the space, if nothing else.
}

const std::shared_ptr<TokenMask>& GrammarConstraint::MaskOf(State state) {
  KnownMask& known = masks_[static_cast<std::uint32_t>(state) % kKnownMasks];
  if (known.mask == nullptr || known.state != state) {
    const TokenMask::Parts parts{&automaton_, vocabulary_.get(), &frames_};
    known = {state, std::make_shared<TokenMask>(parts, graph_, state)};
  }
  return known.mask;
}

void GrammarConstraint::Trim() {
  if (graph_->bytes() <= kMaxGraphBytes + 2 * brought_bytes_) return;
  graph_ = std::make_shared<StateGraph>(&automaton_);
  brought_bytes_ = 0;
  for (KnownMask& known : masks_) known = {};
}

GrammarCursor::GrammarCursor(std::shared_ptr<GrammarConstraint> constraint, bool drops_space)
    : constraint_(std::move(constraint)), drops_space_(drops_space) {
  if (constraint_->reasoning_.has_value()) reasoning_.emplace(&*constraint_->reasoning_);
}

void GrammarCursor::Push(Token token) {
  constraint_->Trim();
  const StateGraph::State before = State();
  const auto under = std::ranges::find(held_, before, &HeldMask::state);
  if (under != held_.end()) steps_ += std::max<std::int64_t>(0, under->mask->steps() - kFreeSteps);
  for (const FilteredMask& filtered : filtered_) {
    if (filtered.path.empty()) steps_ += std::max<std::int64_t>(0, filtered.steps - kFreeSteps);
  }
  filtered_.clear();
  reasoning_ = ReasoningAfter({&token, 1});
  state_ =
      constraint_->Advance(before, token, constraint_->automaton_.has_unique() ? &lists_ : nullptr);
  lists_.Settle();
  if (steps_ > kMaxSequenceSteps) state_ = StateGraph::kDead;
}

StateGraph::State GrammarCursor::State() const {
  const auto& now = constraint_->graph_;
  if (graph_ == now) return state_;
  if (graph_ == nullptr) {
    state_ = drops_space_ ? GrammarConstraint::kBeforeSpace : now->start();
  } else {
    const std::size_t before = now->bytes();
    const auto import = [&](StateGraph::State state) {
      return state == GrammarConstraint::kBeforeSpace ? state : now->Import(*graph_, state);
    };
    state_ = import(state_);
    for (HeldMask& held : held_) held.state = import(held.state);
    constraint_->brought_bytes_ += now->bytes() - before;
  }
  graph_ = now;
  return state_;
}

const std::shared_ptr<TokenMask>& GrammarCursor::MaskAfter(std::span<const Token> path) const {
  StateGraph::State state = State();
  if (path.empty()) {
    if (held_.size() == 1 && held_[0].state == state) return held_[0].mask;
    std::erase_if(held_, [&](const HeldMask& held) { return held.state != state; });
  }
  for (const Token token : path) state = constraint_->Advance(state, token, nullptr);
  const auto known = std::ranges::find(held_, state, &HeldMask::state);
  if (known != held_.end()) return known->mask;
  held_.push_back({state, constraint_->MaskOf(state)});
  return held_.back().mask;
}

std::optional<ReasoningCursor> GrammarCursor::ReasoningAfter(std::span<const Token> path) const {
  std::optional<ReasoningCursor> reasoning = reasoning_;
  for (const Token token : path) {
    if (!reasoning.has_value() || token < 0 || token >= constraint_->vocabulary()) break;
    reasoning->Push(constraint_->vocabulary_->trie.BytesOf(token));
  }
  return reasoning;
}

// Whether not all that the state lets through may follow.
bool GrammarCursor::IsFiltered(std::span<const Token> path) const {
  if (constraint_->automaton_.has_unique()) return true;
  const std::optional<ReasoningCursor> reasoning = ReasoningAfter(path);
  return reasoning.has_value() && reasoning->spent();
}

bool GrammarCursor::Prepare(std::span<const Token> path, std::int64_t* steps) const {
  TokenMask& mask = *MaskAfter(path);
  *steps -= mask.Continue(*steps);
  if (!mask.done()) return false;
  if (mask.refused() || !IsFiltered(path)) return true;
  if (FindFiltered(path) != filtered_.end()) return true;
  if (*steps <= 0) return false;  // Done in one piece.
  *steps -= FilteredAfter(path).steps;
  return true;
}

bool GrammarCursor::Refused(std::span<const Token> path) const {
  if (MaskAfter(path)->refused()) return true;
  return IsFiltered(path) &&
         std::ranges::all_of(FilteredAfter(path).bits, [](auto word) { return word == 0; });
}

std::vector<GrammarCursor::FilteredMask>::iterator GrammarCursor::FindFiltered(
    std::span<const Token> path) const {
  return std::ranges::find_if(filtered_, [&](const FilteredMask& filtered) {
    return std::ranges::equal(filtered.path, path);
  });
}

const GrammarCursor::FilteredMask& GrammarCursor::FilteredAfter(std::span<const Token> path) const {
  const auto known = FindFiltered(path);
  if (known != filtered_.end()) return *known;
  TokenMask& mask = *MaskAfter(path);
  mask.Continue(std::numeric_limits<std::int64_t>::max() / 2);
  FilteredMask filtered{.path = {path.begin(), path.end()},
                        .bits = {mask.bits().begin(), mask.bits().end()}};
  StateGraph::State state = State();
  UniqueLists lists = lists_;
  for (const Token token : path) state = constraint_->Advance(state, token, &lists);
  const bool before_space = state == GrammarConstraint::kBeforeSpace;
  if (state == StateGraph::kDead || mask.refused()) {
    std::ranges::fill(filtered.bits, 0);
  } else if (constraint_->automaton_.has_unique()) {
    StateGraph* const graph = constraint_->graph_.get();
    const ConstraintVocabulary& vocabulary = *constraint_->vocabulary_;
    filtered.steps =
        DropRepeats(vocabulary.trie, vocabulary.repeats, graph,
                    before_space ? graph->start() : state, before_space, &lists, filtered.bits);
  }
  if (const auto reasoning = ReasoningAfter(path); reasoning.has_value() && reasoning->spent()) {
    EndThoughts(*reasoning, constraint_->vocabulary_->trie, filtered.bits);
  }
  filtered_.push_back(std::move(filtered));
  return filtered_.back();
}

std::span<const std::uint64_t> GrammarCursor::Mask(std::span<const Token> path) const {
  TokenMask& mask = *MaskAfter(path);
  mask.Continue(std::numeric_limits<std::int64_t>::max() / 2);
  if (!mask.refused() && IsFiltered(path)) return FilteredAfter(path).bits;
  return mask.bits();
}

}  // namespace foretoken
