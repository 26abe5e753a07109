#include "draft/random/random_drafter.h"

#include "base/philox.h"
#include "draft/registry.h"

namespace foretoken {

void RandomDrafter::Propose(std::span<DraftContext> contexts) {
  for (const DraftContext& context : contexts) {
    context.proposal->Clear();
    context.proposal->source = ProposalSource::kRandom;
    for (int i = 0; i < context.lookahead; ++i) {
      const std::uint32_t draw =
          PhiloxDraw(context.sampling->seed, context.tokens.size() + i, 0, NoisePurpose::kDrafting);
      // Scales by the high word of a product: uniform to within vocabulary / 2^32.
      if (context.laws != nullptr) context.laws->SetUniform(i);
      context.proposal->Extend(static_cast<Token>((std::uint64_t{draw} * vocabulary_) >> 32));
    }
  }
}

std::unique_ptr<Drafter> MakeRandomDrafter(const DrafterParts& parts) {
  return std::make_unique<RandomDrafter>(parts.vocabulary);
}

}  // namespace foretoken
