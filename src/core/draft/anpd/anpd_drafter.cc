#include <algorithm>
#include <array>

#include "core/draft/registry.h"
#include "core/draft/retrieval/sequence_tries.h"

namespace foretoken {
namespace {

constexpr int kLongestNgram = 5;  // N

// The state of N-gram levels while a chain is drafted: the node of its last n tokens, by n < N.
using Levels = std::array<std::uint32_t, kLongestNgram>;

// The token that followed most often; of equals the one that first occurred last, since texts
// repeat what is near. -1 where nothing followed.
Token MostFrequent(const TokenTree& tree, std::uint32_t node) {
  Token best = -1;
  std::uint32_t most = 0;
  tree.VisitChildren(node, [&](std::uint32_t /*child*/, Token token, std::uint32_t count) {
    if (count <= most) return;
    most = count;
    best = token;
  });
  return best;
}

// ANPD (Ou et al., 2024, Section 3): N-grams of prompt and output, counted as tokens come. The next
// token is the likeliest one after the last N - 1 tokens, C(w_{t-N+1} ... w_t) / C(w_{t-N+1} ...
// w_{t-1}) (Equation 2); where these have not occurred, after N - 2, and so on down to one (the
// multi-level N-gram). K tokens are drafted so, each from those before it. Not captured: the
// paper's choice of N and K by task; N is 5 and K the plan's lookahead.
class AnpdDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) {
      Propose(tries_.Follow(context.sequence, context.tokens), context);
    }
  }
  void Forget(SequenceId sequence) override { tries_.Forget(sequence); }

 private:
  static void Propose(const InputTrie& input, const DraftContext& context) {
    const TokenTree& tree = input.tree();
    context.proposal->Clear();
    Levels levels = {};
    for (int n = 1; n < kLongestNgram; ++n) levels[n] = input.Suffix(n);
    const int most = std::min({context.lookahead, context.max_nodes, kMaxProposal});
    while (context.proposal->size() < most) {
      Token next = -1;
      for (int n = kLongestNgram - 1; n > 0 && next < 0; --n) {
        if (levels[n] != 0) next = MostFrequent(tree, levels[n]);
      }
      if (next < 0) break;
      context.proposal->Extend(next);
      for (int n = kLongestNgram - 1; n > 1; --n) {
        levels[n] = levels[n - 1] != 0 ? tree.Find(levels[n - 1], next) : 0;
      }
      levels[1] = tree.Find(0, next);
    }
    if (context.proposal->size() > 0) {
      context.proposal->source = ProposalSource::Of(DrafterId::kAnpd);
    }
  }

  SequenceTries tries_;
};

}  // namespace

std::unique_ptr<Drafter> MakeAnpdDrafter(const DrafterParts&) {
  return std::make_unique<AnpdDrafter>();
}

}  // namespace foretoken
