#include "draft/ngram/ngram_drafter.h"

#include <algorithm>

#include "draft/registry.h"

namespace foretoken {
namespace {

constexpr int kLongestMatch = 3;

// Where the latest earlier occurrence of the last `length` tokens ends, or 0.
std::size_t FindContinuation(std::span<const Token> tokens, std::size_t length) {
  const auto suffix = tokens.last(length);
  for (std::size_t end = tokens.size() - 1; end >= length; --end) {
    if (std::equal(suffix.begin(), suffix.end(), tokens.begin() + (end - length))) return end;
  }
  return 0;
}

}  // namespace

void NgramDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    context.proposal->Clear();
    const auto tokens = context.tokens;
    for (std::size_t length = kLongestMatch; length >= 1; --length) {
      if (tokens.size() <= length) continue;
      const std::size_t begin = FindContinuation(tokens, length);
      if (begin == 0) continue;
      const std::size_t count =
          std::min(tokens.size() - begin, static_cast<std::size_t>(context.lookahead));
      for (std::size_t i = 0; i < count; ++i) context.proposal->Extend(tokens[begin + i]);
      context.proposal->source = ProposalSource::kNgram;
      break;
    }
  }
}

std::unique_ptr<Drafter> MakeNgramDrafter(const DrafterParts&) {
  return std::make_unique<NgramDrafter>();
}

}  // namespace foretoken
