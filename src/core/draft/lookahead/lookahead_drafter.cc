#include <algorithm>
#include <unordered_map>

#include "core/draft/grow_proposal.h"
#include "core/draft/lookahead/lookahead_window.h"
#include "core/draft/lookahead/ngram_pool.h"
#include "core/draft/per_scope.h"
#include "core/draft/registry.h"

namespace foretoken {
namespace {

// W columns, as many levels as G n-grams of that length leave room for, and G, within a number of
// nodes; where that is too few for all, columns and n-grams go in equal parts, n-grams first.
struct LookaheadShape {
  int columns = 0;  // W
  int levels = 0;   // K = N - 1
  int guesses = 0;  // G
};

LookaheadShape ShapeWithin(int nodes, int window, int guesses) {
  const int wanted = window + guesses;
  if (nodes <= 0 || wanted <= 0) return {};
  const int levels = std::clamp(nodes / wanted, 1, NgramPool::kMaxLength);
  const int chains = std::min(wanted, nodes / levels);
  const int columns = (chains * window + wanted - 1) / wanted;
  return {.columns = columns, .levels = levels, .guesses = chains - columns};
}

// Lookahead decoding (Fu et al., 2024, "Break the sequential dependency of LLM inference using
// lookahead decoding"). The lookahead branch, which makes n-grams, and the verification branch,
// which are n-grams that begin with the root, are one token tree. Unlike the paper's: tokens are
// chosen by the noise of their position at any temperature, new columns are pieces of the text,
// and where several tokens are accepted the window moves on by as many columns.
class LookaheadDrafter : public Drafter {
 public:
  explicit LookaheadDrafter(const DrafterParts& parts)
      : choice_(parts.backend, parts.vocabulary), pools_([] { return NgramPool(); }) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) Propose(context);
  }

  void Observe(const VerifiedProposal& verified) override {
    const auto window = windows_.find(verified.sequence);
    if (window == windows_.end()) return;
    NgramPool& pool = pools_.Use(verified.scope);
    window->second.Observe(verified, &choice_, [&](std::span<const Token> ngram) {
      pool.Insert(ngram.front(), ngram.subspan(1));
    });
  }

  void Forget(SequenceId sequence) override { windows_.erase(sequence); }

 private:
  void Propose(const DraftContext& context) {
    Proposal& proposal = *context.proposal;
    proposal.Clear();
    const int nodes = std::min(context.max_nodes, kMaxProposal);
    const LookaheadShape shape = ShapeWithin(nodes, context.window, context.guesses);
    if (shape.levels == 0) return;
    const auto length = static_cast<std::size_t>(std::min(context.lookahead, shape.levels));
    for (const auto ngram :
         pools_.Use(context.scope).Latest(context.tokens.back(), shape.guesses)) {
      int node = 0;
      for (const Token token : ngram.first(std::min(length, ngram.size()))) {
        node = Grow(&proposal, node, token);
      }
    }
    LookaheadWindow& window = windows_[context.sequence];
    window.Fit(context.tokens, context.sampling->seed, shape.columns, shape.levels);
    window.AppendTo(context.lookahead, &proposal);
    if (proposal.size() > 0) proposal.source = ProposalSource::Of(DrafterId::kLookahead);
  }

  TargetChoice choice_;
  PerScope<NgramPool> pools_;
  std::unordered_map<SequenceId, LookaheadWindow> windows_;
};

}  // namespace

std::unique_ptr<Drafter> MakeLookaheadDrafter(const DrafterParts& parts) {
  return std::make_unique<LookaheadDrafter>(parts);
}

}  // namespace foretoken
