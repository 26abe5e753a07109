#include "text/grammar/tokens/token_mask.h"

#include <algorithm>

#include "text/grammar/automaton/uniform_steps.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxBytes = 32 << 20;

// Whether all of them go on is asked for subtrees of more nodes.
constexpr int kSmallSubtree = 16;

void Set(Token token, std::vector<std::uint64_t>* mask) {
  (*mask)[token / 64] |= std::uint64_t{1} << token % 64;
}

void SetAll(std::span<const Token> tokens, std::vector<std::uint64_t>* mask) {
  for (const Token token : tokens) Set(token, mask);
}

}  // namespace

std::shared_ptr<const FrameMask> FrameMasks::Find(std::span<const ProgramCounter> counters) {
  const std::size_t id = keys_.Intern(counters);
  if (id == masks_.size()) masks_.emplace_back();
  return masks_[id];
}

std::shared_ptr<const FrameMask> FrameMasks::Add(std::span<const ProgramCounter> counters,
                                                 FrameMask mask) {
  if (bytes_ + keys_.bytes() > kMaxBytes) {
    keys_.Clear();
    masks_.clear();
    bytes_ = 0;
  }
  bytes_ += mask.bits.size() * 8 + (mask.tokens.size() + mask.exits.size()) * 4;
  const std::size_t id = keys_.Intern(counters);
  if (id == masks_.size()) masks_.emplace_back();
  masks_[id] = std::make_shared<const FrameMask>(std::move(mask));
  return masks_[id];
}

TokenMask::TokenMask(const Parts& parts, std::shared_ptr<StateGraph> graph, State state)
    : parts_(parts),
      state_(state),
      graph_(std::move(graph)),
      bits_((parts.vocabulary->trie.vocabulary() + 63) / 64, 0) {
  if (state == kBeforeSpace) {
    AddBeforeSpace();
  } else {
    const auto threads = graph_->threads(state);
    threads_.assign(threads.begin(), threads.end());
  }
}

// The first byte of a token decides: a space does not count.
void TokenMask::AddBeforeSpace() {
  const TokenTrie& trie = parts_.vocabulary->trie;
  from_ = graph_->start();
  for (int child = 1; child < trie.size(); child = trie.at(child).end) {
    const bool space = trie.at(child).byte == ' ';
    spans_.push_back({space ? child + 1 : child, trie.at(child).end});
    if (!space) continue;
    for (const Token token : trie.tokens(child)) Set(token, &bits_);
  }
}

std::int64_t TokenMask::Continue(std::int64_t steps) {
  if (done()) return 0;
  // What Walk takes of its limit is a step for each node and what the graph spends.
  const std::shared_ptr<const StateGraph> graph = graph_;
  const std::int64_t begin = graph->spent() + walked_;
  path_.resize(parts_.vocabulary->trie.depth() + 1);
  while (Walk(begin + steps)) {
    if (building_ != nullptr) CompleteFrame();
    if (!spans_.empty()) {
      BeginWalk(spans_.back());
      spans_.pop_back();
    } else if (!TakeFrame()) {
      Finish();
      break;
    }
  }
  if (!done() && steps_ > kMaxSteps) Refuse();
  return graph->spent() + walked_ - begin;
}

void TokenMask::BeginWalk(Span span) {
  walk_ = span;
  loop_ = StateGraph::kDead;
  loop_kinds_ = kNoKinds;
  if (span.begin < span.end) path_[parts_.vocabulary->trie.at(span.begin).depth - 1] = from_;
}

// Goes on with walk_. False where there is more to do, but the limit was reached.
bool TokenMask::Walk(std::int64_t spent_limit) {
  const TokenTrie& trie = parts_.vocabulary->trie;
  if (building_ == nullptr) {
    return Walk(spent_limit, &counted_,
                [&](int begin, int end, State) { SetAll(trie.tokens(begin, end), &bits_); });
  }
  FrameMask& frame = *building_;
  return Walk(spent_limit, &counted_in_frame_, [&](int begin, int end, State state) {
    if (!taken_.empty() && taken_.back().end == begin) {
      taken_.back().end = end;
    } else {
      taken_.push_back({begin, end});
    }
    if (graph_->HasLeft(state) && trie.at(begin).end > begin + 1) frame.exits.push_back(begin);
  });
}

// Calls `take(begin, end, state)` for the nodes of walk_ that the grammar lets through, from the
// first with its state to before `end`.
template <typename Take>
bool TokenMask::Walk(std::int64_t spent_limit, std::vector<bool>* counted, Take take) {
  const TokenTrie& trie = parts_.vocabulary->trie;
  const StateGraph& graph = *graph_;
  State* const path = path_.data();
  const int end = walk_.end;
  int node = walk_.begin;
  std::int64_t left = NodesLeft(spent_limit);
  std::int64_t all = left;
  const auto count_nodes = [&] {
    steps_ += all - left;
    walked_ += all - left;
  };
  while (node < end && left > 0) {
    const TokenTrie::Node& here = trie.at(node);
    const State before = path[here.depth - 1];
    State state = StateGraph::kDead;
    --left;
    if (!graph.FollowCheap(before, here.byte, &state)) {
      count_nodes();
      state = FollowCostly(before, here.byte, counted);
      left = all = NodesLeft(spent_limit);
    }
    if (state == StateGraph::kDead) {
      node = here.end;
      continue;
    }
    path[here.depth] = state;
    int next = node + 1;
    if (state == loop_ && (trie.below(node).kinds & ~loop_kinds_) == 0) {
      next = here.end;
    } else if (here.end - node > kSmallSubtree) {
      count_nodes();
      if (LetsAllThrough(node, state, counted)) next = here.end;
      left = all = NodesLeft(spent_limit);
    }
    take(node, next, state);
    node = next;
  }
  count_nodes();
  walk_.begin = node;
  return node >= end;
}

// Whether all that is below the node goes on, as far as that is known with little work.
bool TokenMask::LetsAllThrough(int node, State state, std::vector<bool>* counted) {
  const TokenTrie::Below& below = parts_.vocabulary->trie.below(node);
  const UniformSteps::Answer answer =
      graph_->uniform_steps().LetThrough(state, below.kinds, below.length);
  if (answer.costly.has_value()) FollowCostly(answer.costly->first, answer.costly->second, counted);
  if (answer.loops) {
    loop_kinds_ = below.kinds | (loop_ == state ? loop_kinds_ : kNoKinds);
    loop_ = state;
  }
  return answer.all;
}

// How many cheap ones there may be until a limit is reached, by each a step.
std::int64_t TokenMask::NodesLeft(std::int64_t spent_limit) const {
  return std::min(spent_limit - walked_ - graph_->spent(), kMaxSteps + 1 - steps_);
}

TokenMask::State TokenMask::FollowCostly(State before, std::uint8_t byte,
                                         std::vector<bool>* counted) {
  const StateGraph::Transition taken = graph_->Follow(before, byte);
  if (taken.steps > StateGraph::kCheapSteps) {
    const std::size_t index = graph_->IndexOf(before, byte);
    if (index >= counted->size()) counted->resize(graph_->transitions(), false);
    if (!(*counted)[index]) steps_ += taken.steps;
    (*counted)[index] = true;
  }
  return taken.to;
}

// Begins with the next frame; false where there is none.
bool TokenMask::TakeFrame() {
  if (thread_ == threads_.size()) return false;
  context_ = threads_[thread_].context;
  counters_.clear();
  for (; thread_ < threads_.size() && threads_[thread_].context == context_; ++thread_) {
    counters_.push_back(parts_.automaton->Twin(threads_[thread_].counter));
  }
  std::sort(counters_.begin(), counters_.end());
  counters_.erase(std::unique(counters_.begin(), counters_.end()), counters_.end());
  steps_ += std::ssize(counters_);
  if (const auto known = parts_.frames->Find(counters_); known != nullptr) {
    steps_ += known->steps;
    AddFrame(*known);
    return true;
  }
  building_ = std::make_shared<FrameMask>();
  building_from_ = steps_;
  counted_in_frame_.clear();
  from_ = graph_->Within(counters_);
  spans_.push_back({1, parts_.vocabulary->trie.size()});
  return true;
}

void TokenMask::CompleteFrame() {
  if (!spans_.empty()) return;  // Its walk has yet to begin.
  building_->steps = steps_ - building_from_;
  const TokenTrie& trie = parts_.vocabulary->trie;
  std::size_t tokens = 0;
  for (const Span& span : taken_) tokens += trie.tokens(span.begin, span.end).size();
  const bool many = tokens > 2 * bits_.size();
  if (many) building_->bits.assign(bits_.size(), 0);
  building_->tokens.reserve(many ? 0 : tokens);
  for (const Span& span : taken_) {
    const auto own = trie.tokens(span.begin, span.end);
    if (many) {
      SetAll(own, &building_->bits);
    } else {
      building_->tokens.insert(building_->tokens.end(), own.begin(), own.end());
    }
  }
  taken_.clear();
  const std::shared_ptr<const FrameMask> frame =
      parts_.frames->Add(counters_, std::move(*building_));
  building_ = nullptr;
  AddFrame(*frame);
}

void TokenMask::AddFrame(const FrameMask& frame) {
  for (std::size_t i = 0; i < frame.bits.size(); ++i) bits_[i] |= frame.bits[i];
  SetAll(frame.tokens, &bits_);
  if (frame.exits.empty()) return;
  from_ = graph_->Return(context_);
  if (!graph_->MayContinue(from_)) return;
  for (const int node : frame.exits) {
    spans_.push_back({node + 1, parts_.vocabulary->trie.at(node).end});
  }
}

void TokenMask::Finish() {
  if (steps_ > kMaxSteps) return Refuse();
  const State state = state_ == kBeforeSpace ? graph_->start() : state_;
  if (graph_->MayEnd(state)) {
    for (const Token token : parts_.vocabulary->end_tokens) {
      if (token >= 0 && token < parts_.vocabulary->trie.vocabulary()) Set(token, &bits_);
    }
  }
  const auto empty = [](std::uint64_t word) { return word == 0; };
  if (state != StateGraph::kDead && std::ranges::all_of(bits_, empty)) return Refuse();
  Leave();
}

void TokenMask::Refuse() {
  refused_ = true;
  std::ranges::fill(bits_, 0);
  Leave();
}

// Only the bits are needed from here on.
void TokenMask::Leave() {
  graph_ = nullptr;
  threads_ = {};
  spans_ = {};
  path_ = {};
  taken_ = {};
  counted_in_frame_ = {};
  counted_ = {};
}

}  // namespace foretoken
