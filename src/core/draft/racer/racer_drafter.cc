#include <algorithm>
#include <vector>

#include "core/draft/grow_proposal.h"
#include "core/draft/per_scope.h"
#include "core/draft/recycle/rank_tree.h"
#include "core/draft/registry.h"
#include "core/draft/retrieval/sequence_tries.h"

namespace foretoken {
namespace {

constexpr int kRacerNodes = 4 * kMaxProposal;
constexpr int kShortestMatch = 2;

// RACER (Zhang et al., 2026, arXiv 2604.14885): one tree of what followed earlier in the text where
// its last tokens occurred (seen), and, with the nodes that this leaves, of what the target said
// behind the same tokens last (unseen). As in the paper and its code: all matches of the text's end
// of two tokens or more add their continuations, the most frequent first; the rest is its logits
// tree, over the 8 likeliest tokens of every row.
//
// Not as there: the n-grams are those of the sequence's own text, of 9 tokens in place of 10, and
// lie in the trie that mode sssd uses (InputTrie). That knows the nodes of all suffixes, which is
// what the failure links of an Aho-Corasick automaton are for, and is bounded by the text's latest
// 32,768 tokens, the oldest leaving first, in place of 10,000 nodes, the least recently used
// leaving first. Of the prompt's rows the last only is heard.
class RacerDrafter : public Drafter {
 public:
  explicit RacerDrafter(int vocabulary)
      : tree_(HalvingTree(kRacerNodes)),
        matrices_([vocabulary] { return SuccessorMatrix(vocabulary); }) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) {
      context.proposal->Clear();
      AppendSeen(tries_.Follow(context.sequence, context.tokens), context);
      AppendRanks(tree_, matrices_.Use(context.scope), context);
      if (context.proposal->size() == 0) continue;
      context.proposal->source = ProposalSource::Of(DrafterId::kRacer);
    }
  }

  void Observe(const VerifiedProposal& verified) override {
    matrices_.Use(verified.scope).Learn(verified);
  }

  void Forget(SequenceId sequence) override { tries_.Forget(sequence); }

 private:
  // A continuation of a match, below a node of the proposal.
  struct Candidate {
    std::uint32_t count;
    int depth;
    int match;  // Tokens of the text's end.
    std::uint32_t node;
    Token token;
    int parent;
  };
  // Among equally frequent candidates the nearer one comes first, then the one of the longer match.
  static bool Later(const Candidate& a, const Candidate& b) {
    if (a.count != b.count) return a.count < b.count;
    if (a.depth != b.depth) return a.depth > b.depth;
    if (a.match != b.match) return a.match < b.match;
    return a.token > b.token;
  }

  void AppendSeen(const InputTrie& trie, const DraftContext& context) {
    queue_.clear();
    for (int match = InputTrie::kDepth - 1; match >= kShortestMatch; --match) {
      const std::uint32_t node = trie.Suffix(match);
      if (node != 0) PushChildren(trie.tree(), {.depth = 0, .match = match, .node = node});
    }
    while (!queue_.empty() && context.proposal->size() < context.max_nodes) {
      std::ranges::pop_heap(queue_, Later);
      Candidate best = queue_.back();
      queue_.pop_back();
      if (best.depth > context.lookahead) continue;
      best.parent = Grow(context.proposal, best.parent, best.token);
      PushChildren(trie.tree(), best);
    }
  }

  // What follows `above`, whose `parent` is the node of the proposal that it has become.
  void PushChildren(const TokenTree& tree, const Candidate& above) {
    tree.VisitChildren(above.node, [&](std::uint32_t child, Token token, std::uint32_t count) {
      queue_.push_back({.count = count,
                        .depth = above.depth + 1,
                        .match = above.match,
                        .node = child,
                        .token = token,
                        .parent = above.parent});
      std::ranges::push_heap(queue_, Later);
    });
  }

  RankTree tree_;
  PerScope<SuccessorMatrix> matrices_;
  SequenceTries tries_;
  std::vector<Candidate> queue_;  // A heap.
};

}  // namespace

std::unique_ptr<Drafter> MakeRacerDrafter(const DrafterParts& parts) {
  return std::make_unique<RacerDrafter>(parts.vocabulary);
}

}  // namespace foretoken
