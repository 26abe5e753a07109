#include "grammar/token_constraint.h"

#include <fmt/core.h>

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kCachedMasks = 64;
constexpr std::size_t kMaxGraphBytes = 16 << 20;
constexpr std::size_t kMaxFrameBytes = 32 << 20;

void Set(Token token, std::vector<std::uint64_t>* mask) {
  (*mask)[token / 64] |= std::uint64_t{1} << token % 64;
}

}  // namespace

Result<std::shared_ptr<TokenConstraint>> TokenConstraint::Create(
    std::string grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary) {
  FT_ASSIGN_OR_RETURN(const Grammar parsed, ParseGrammar(grammar));
  FT_ASSIGN_OR_RETURN(Automaton automaton, Automaton::Compile(parsed, vocabulary->trie.depth()));
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    if (!automaton.Uses(value) || vocabulary->trie.HasByte(value)) continue;
    return InvalidInput(
        fmt::format("the grammar uses the byte 0x{:02X}, but no token of the model stands for it "
                    "alone, so a text could end up where nothing fits: use other characters, or a "
                    "model whose tokenizer knows all bytes",
                    byte));
  }
  return std::shared_ptr<TokenConstraint>(
      new TokenConstraint(std::move(grammar), std::move(automaton), std::move(vocabulary)));
}

TokenConstraint::TokenConstraint(std::string grammar, Automaton automaton,
                                 std::shared_ptr<const ConstraintVocabulary> vocabulary)
    : grammar_(std::move(grammar)),
      automaton_(std::move(automaton)),
      vocabulary_(std::move(vocabulary)),
      words_((vocabulary_->trie.vocabulary() + 63) / 64),
      graph_(&automaton_),
      cache_(kCachedMasks),
      path_(vocabulary_->trie.depth() + 1) {}

bool TokenConstraint::IsEndToken(Token token) const {
  const auto& ends = vocabulary_->end_tokens;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

TokenConstraint::State TokenConstraint::Advance(State state, Token token) {
  if (token < 0 || token >= vocabulary()) return StateGraph::kDead;
  std::string_view bytes = vocabulary_->trie.BytesOf(token);
  if (bytes.empty()) return StateGraph::kDead;
  if (state == kBeforeSpace) {
    state = graph_.start();
    if (bytes.front() == ' ') bytes.remove_prefix(1);
  }
  return graph_.Next(state, bytes);
}

bool TokenConstraint::MayEnd(State state) const {
  return graph_.MayEnd(state == kBeforeSpace ? graph_.start() : state);
}

bool TokenConstraint::MayContinue(State state) const {
  return state == kBeforeSpace || graph_.MayContinue(state);  // With the space, if nothing else.
}

std::span<const std::uint64_t> TokenConstraint::Mask(State state) {
  CachedMask& cached = cache_[static_cast<std::uint32_t>(state) % kCachedMasks];
  if (!cached.bits.empty() && cached.state == state) return cached.bits;
  cached.state = state;
  cached.bits.assign(words_, 0);
  if (state == kBeforeSpace) {
    // The first byte of a token decides: a space does not count.
    const TokenTrie& trie = vocabulary_->trie;
    for (int child = 1; child < trie.size(); child = trie.at(child).end) {
      if (trie.at(child).byte != ' ') {
        AddWalk(child, trie.at(child).end, graph_.start(), &cached.bits);
        continue;
      }
      for (const Token token : trie.tokens(child)) Set(token, &cached.bits);
      AddWalk(child + 1, trie.at(child).end, graph_.start(), &cached.bits);
    }
  } else {
    AddFrames(state, &cached.bits);
  }
  if (MayEnd(state)) {
    for (const Token token : vocabulary_->end_tokens) {
      if (token >= 0 && token < vocabulary()) Set(token, &cached.bits);
    }
  }
  return cached.bits;
}

// A state's mask is put together from those of its frames: the threads of each context. They are
// the same wherever a rule is called from; only tokens that reach beyond its end must be looked at.
void TokenConstraint::AddFrames(State state, std::vector<std::uint64_t>* mask) {
  const auto live = graph_.threads(state);
  const std::vector<GrammarThread> threads(live.begin(), live.end());
  for (auto begin = threads.begin(); begin != threads.end();) {
    const auto end = std::find_if(begin, threads.end(), [&](const GrammarThread& thread) {
      return thread.context != begin->context;
    });
    counters_.clear();
    for (auto thread = begin; thread != end; ++thread) {
      counters_.push_back(automaton_.Twin(thread->counter));
    }
    std::sort(counters_.begin(), counters_.end());
    counters_.erase(std::unique(counters_.begin(), counters_.end()), counters_.end());
    const FrameMask& frame = Frame(counters_);
    if (frame.dense) {
      for (std::size_t i = 0; i < words_; ++i) (*mask)[i] |= frame.bits[i];
    }
    for (const Token token : frame.tokens) Set(token, mask);
    if (!frame.exits.empty()) {
      const State outside = graph_.Return(begin->context);
      if (graph_.MayContinue(outside)) {
        for (const int node : frame.exits) {
          AddWalk(node + 1, vocabulary_->trie.at(node).end, outside, mask);
        }
      }
    }
    begin = end;
  }
}

const TokenConstraint::FrameMask& TokenConstraint::Frame(std::span<const ProgramCounter> counters) {
  bool added = false;
  const int id = frame_keys_.Intern(counters, &added);
  if (!added) return *frames_[id];
  frames_.push_back(std::make_unique<FrameMask>());
  FrameMask& frame = *frames_.back();
  const TokenTrie& trie = vocabulary_->trie;
  Walk(1, trie.size(), graph_.Within(counters), [&](int node, State state) {
    const auto tokens = trie.tokens(node);
    frame.tokens.insert(frame.tokens.end(), tokens.begin(), tokens.end());
    if (graph_.HasLeft(state) && trie.at(node).end > node + 1) frame.exits.push_back(node);
  });
  frame.dense = frame.tokens.size() > 2 * words_;
  if (frame.dense) {
    frame.bits.assign(words_, 0);
    for (const Token token : frame.tokens) Set(token, &frame.bits);
    frame.tokens.clear();
  }
  frame.tokens.shrink_to_fit();
  frame_bytes_ += frame.bits.size() * 8 + (frame.tokens.size() + frame.exits.size()) * 4;
  return frame;
}

// Calls `visit(node, state)` for the trie nodes from `begin` to `end` (a run of subtrees) that
// `from`, the state above them, lets through.
template <typename Visit>
void TokenConstraint::Walk(int begin, int end, State from, Visit visit) {
  if (begin >= end) return;
  const TokenTrie& trie = vocabulary_->trie;
  path_[trie.at(begin).depth - 1] = from;
  for (int node = begin; node < end;) {
    const TokenTrie::Node& here = trie.at(node);
    const State state = graph_.Next(path_[here.depth - 1], here.byte);
    if (state == StateGraph::kDead) {
      node = here.end;
      continue;
    }
    path_[here.depth] = state;
    visit(node, state);
    ++node;
  }
}

void TokenConstraint::AddWalk(int begin, int end, State from, std::vector<std::uint64_t>* mask) {
  Walk(begin, end, from, [&](int node, State) {
    for (const Token token : vocabulary_->trie.tokens(node)) Set(token, mask);
  });
}

void TokenConstraint::Trim() {
  if (frame_bytes_ > kMaxFrameBytes) {
    frame_keys_.Clear();
    frames_.clear();
    frame_bytes_ = 0;
  }
  if (graph_.bytes() > kMaxGraphBytes) {
    graph_.Clear();
    for (CachedMask& cached : cache_) cached.bits.clear();
    ++epoch_;
  }
}

void ConstraintCursor::Push(Token token) {
  constraint_->Trim();
  state_ = constraint_->Advance(State(), token);
  epoch_ = constraint_->epoch_;
  output_.push_back(token);
}

StateGraph::State ConstraintCursor::State() const {
  if (epoch_ == constraint_->epoch_) return state_;
  state_ = drops_space_ ? TokenConstraint::kBeforeSpace : constraint_->graph_.start();
  for (const Token token : output_) state_ = constraint_->Advance(state_, token);
  epoch_ = constraint_->epoch_;
  return state_;
}

std::span<const std::uint64_t> ConstraintCursor::Mask(std::span<const Token> path) const {
  StateGraph::State state = State();
  for (const Token token : path) state = constraint_->Advance(state, token);
  return constraint_->Mask(state);
}

}  // namespace foretoken
