#include "core/draft/trie/trie_drafter.h"

#include "core/draft/registry.h"

namespace foretoken {
namespace {

constexpr int kLongestTrieMatch = 4;

// The node of `suffix`, or 0.
std::uint32_t Find(const TokenTree& tree, std::span<const Token> suffix) {
  std::uint32_t node = 0;
  for (const Token token : suffix) {
    node = tree.Find(node, token);
    if (node == 0) return 0;
  }
  return node;
}

}  // namespace

void TrieDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    Propose(tries_.Follow(context.sequence, context.tokens), context);
  }
}

void TrieDrafter::Propose(const InputTrie& input, const DraftContext& context) {
  context.proposal->Clear();
  const TokenTree& ended = ended_.Use(context.scope).tree();
  for (int match = kLongestTrieMatch; match >= 1; --match) {
    const std::uint32_t own = input.Suffix(match);
    if (own == 0) continue;
    sources_.clear();
    // At equal frequency the sequence's own continuations come first.
    sources_.push_back({&input.tree(), own, 1.0, 1.0});
    const auto suffix = context.tokens.last(match);
    const std::uint32_t other = Find(ended, suffix);
    if (other != 0) sources_.push_back({&ended, other, 1.0, 1.0});
    fusion_.Fuse(sources_, context.lookahead, context.proposal);
    if (context.proposal->size() == 0) continue;
    context.proposal->source = ProposalSource::kRetrieval;
    return;
  }
}

void TrieDrafter::Remember(const EndedText& text) {
  InputTrie& trie = ended_.Use(text.scope);
  for (const Token token : text.tokens) trie.Append(token);
  trie.Break();
}

std::unique_ptr<Drafter> MakeTrieDrafter(const DrafterParts&) {
  return std::make_unique<TrieDrafter>();
}

}  // namespace foretoken
