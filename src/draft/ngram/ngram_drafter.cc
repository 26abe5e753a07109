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

// Prompt lookup: the continuation of the latest earlier occurrence of the longest suffix of 3, 2 or
// 1 tokens, in prompt and output alike. Stateless.
class NgramDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) Propose(context);
  }

 private:
  static void Propose(const DraftContext& context) {
    context.proposal->Clear();
    const auto tokens = context.tokens;
    for (std::size_t length = kLongestMatch; length >= 1; --length) {
      if (tokens.size() <= length) continue;
      const std::size_t begin = FindContinuation(tokens, length);
      if (begin == 0) continue;
      const std::size_t count =
          std::min(tokens.size() - begin, static_cast<std::size_t>(context.lookahead));
      for (std::size_t i = 0; i < count; ++i) context.proposal->Extend(tokens[begin + i]);
      context.proposal->source = ProposalSource::Of(DrafterId::kNgram);
      return;
    }
  }
};

}  // namespace

std::unique_ptr<Drafter> MakeNgramDrafter(const DrafterParts&) {
  return std::make_unique<NgramDrafter>();
}

}  // namespace foretoken
