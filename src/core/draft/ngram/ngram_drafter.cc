#include <algorithm>

#include "base/numbers/integers.h"
#include "core/draft/latest_occurrence.h"
#include "core/draft/registry.h"

namespace foretoken {
namespace {

constexpr int kLongestNgramMatch = 3;

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
    for (std::size_t length = kLongestNgramMatch; length >= 1; --length) {
      const std::size_t begin = LatestOccurrence(tokens, {}, length);
      if (begin == 0) continue;
      const std::size_t count = std::min(tokens.size() - begin, Size(context.lookahead));
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
