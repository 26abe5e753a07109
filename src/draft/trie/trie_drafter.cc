#include "draft/trie/trie_drafter.h"

#include "draft/registry.h"

namespace foretoken {
namespace {

constexpr int kLongestMatch = 4;

}  // namespace

void TrieDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    std::vector<Token>& tokens = tokens_[context.sequence];
    const auto known = static_cast<std::ptrdiff_t>(tokens.size());
    tokens.insert(tokens.end(), context.tokens.begin() + known, context.tokens.end());
    Propose(tries_.Follow(context.sequence, context.tokens), context);
  }
}

void TrieDrafter::Propose(const InputTrie& input, const DraftContext& context) {
  context.proposal->Clear();
  for (int match = kLongestMatch; match >= 1; --match) {
    const std::uint32_t own = input.Suffix(match);
    if (own == 0) continue;
    sources_.clear();
    // At equal frequency the sequence's own continuations come first.
    sources_.push_back({&input.tree(), own, 1.0, 1.0});
    const auto suffix = context.tokens.last(static_cast<std::size_t>(match));
    if (const std::uint32_t ended = FindEnded(suffix); ended != 0) {
      sources_.push_back({&ended_.tree(), ended, 1.0, 1.0});
    }
    fusion_.Fuse(sources_, context.lookahead, context.proposal);
    if (context.proposal->size() == 0) continue;
    context.proposal->source = ProposalSource::kRetrieval;
    return;
  }
}

std::uint32_t TrieDrafter::FindEnded(std::span<const Token> suffix) const {
  std::uint32_t node = 0;
  for (const Token token : suffix) {
    node = ended_.tree().Find(node, token);
    if (node == 0) return 0;
  }
  return node;
}

void TrieDrafter::Remember(std::span<const Token> tokens) {
  for (const Token token : tokens) ended_.Append(token);
  ended_.Break();
}

void TrieDrafter::Forget(SequenceId sequence) {
  tries_.Forget(sequence);
  const auto found = tokens_.find(sequence);
  if (found == tokens_.end()) return;
  Remember(found->second);
  tokens_.erase(found);
}

std::unique_ptr<Drafter> MakeTrieDrafter(const DrafterParts&) {
  return std::make_unique<TrieDrafter>();
}

}  // namespace foretoken
