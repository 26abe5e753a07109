#include "core/draft/suffix/suffix_drafter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/draft/registry.h"

namespace foretoken {
namespace {

constexpr double kMaxSpecFactor = 2;     // alpha; the paper finds 1 to 4 to work well.
constexpr double kMinProbability = 0.1;  // D of a node, at least.

}  // namespace

void SuffixDrafter::Propose(std::span<DraftContext> contexts) {
  for (const DraftContext& context : contexts) {
    context.proposal->Clear();
    const Text& text = Follow(context);
    double best_score = 0;
    // At equal scores the sequence's own text comes first, then what ended last.
    Consider(text.automaton, context, &best_score);
    const Generations& ended = ended_.Use(context.scope);
    Consider(ended.young, context, &best_score);
    Consider(ended.old, context, &best_score);
    if (best_score > 0) context.proposal->source = ProposalSource::Of(DrafterId::kSuffix);
  }
}

const SuffixDrafter::Text& SuffixDrafter::Follow(const DraftContext& context) {
  std::unique_ptr<Text>& text = texts_[context.sequence];
  if (text == nullptr) {
    if (spare_.empty()) {
      text = std::make_unique<Text>();
    } else {
      text = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  FT_CHECK(text->tokens <= context.tokens.size(), "a sequence has become shorter");
  for (const Token token : context.tokens.subspan(text->tokens)) text->automaton.Append(token);
  text->tokens = context.tokens.size();
  return *text;
}

// Takes the best tree of `texts` where its score is above the best one so far. Patterns of one
// state occur at the same places and have the same continuations, of which the longest pattern is
// allowed the most: it stands for all.
void SuffixDrafter::Consider(const SuffixAutomaton& texts, const DraftContext& context,
                             double* best_score) {
  const int most = std::min(context.lookahead, context.max_nodes);
  const auto longest = std::min<std::size_t>(kLongestPattern, context.tokens.size());
  auto [state, length] = texts.LongestSuffix(context.tokens.last(longest));
  while (state != SuffixAutomaton::kRoot) {
    const int max_spec = std::min(most, static_cast<int>(kMaxSpecFactor * length));
    // No node is surer than 1, so neither this nor a shorter pattern can do better.
    if (*best_score >= max_spec) return;
    const CandidateSource source = {&texts, state, 1.0, 1.0};
    fusion_.Fuse(std::span(&source, 1), max_spec, &tried_, std::span(&kMinProbability, 1));
    double score = 0;
    for (const CandidateScore& node : fusion_.scores()) score += node.probability;
    if (score > *best_score) {
      *best_score = score;
      *context.proposal = tried_;
    }
    state = texts.Link(state);
    length = texts.length(state);
  }
}

void SuffixDrafter::Remember(const EndedText& text) {
  auto output = text.tokens.subspan(std::min(text.prompt, text.tokens.size()));
  output = output.last(std::min(output.size(), kGenerationTokens));
  Generations& ended = ended_.Use(text.scope);
  if (ended.young.tokens() + output.size() > kGenerationTokens) {
    std::swap(ended.young, ended.old);
    ended.young.Clear();
  }
  for (const Token token : output) ended.young.Append(token);
  ended.young.Break();
}

void SuffixDrafter::Forget(SequenceId sequence) {
  const auto found = texts_.find(sequence);
  if (found == texts_.end()) return;
  std::unique_ptr<Text> text = std::move(found->second);
  texts_.erase(found);
  text->automaton.Clear();
  text->tokens = 0;
  spare_.push_back(std::move(text));
}

std::unique_ptr<Drafter> MakeSuffixDrafter(const DrafterParts&) {
  return std::make_unique<SuffixDrafter>();
}

}  // namespace foretoken
