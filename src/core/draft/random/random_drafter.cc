#include "base/numbers/philox.h"
#include "core/draft/registry.h"

namespace foretoken {
namespace {

// Chains of uniformly random tokens: the paper's cheapest fallback (Section 4.3), whose only use is
// that it costs nothing. Stateless: draws are a function of the seed and the position.
class RandomDrafter : public Drafter {
 public:
  explicit RandomDrafter(int vocabulary) : vocabulary_(vocabulary) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) {
      context.proposal->Clear();
      context.proposal->source = ProposalSource::Of(DrafterId::kRandom);
      for (int i = 0; i < context.lookahead; ++i) Extend(context, i);
    }
  }

 private:
  void Extend(const DraftContext& context, int i) const {
    const std::uint32_t draw =
        PhiloxDraw(context.sampling->seed, context.tokens.size() + i, 0, NoisePurpose::kDrafting);
    if (context.distributions != nullptr) context.distributions->SetUniform(i);
    // Scales by the high word of a product: uniform to within vocabulary / 2^32.
    context.proposal->Extend(static_cast<Token>((std::uint64_t{draw} * vocabulary_) >> 32));
  }

  int vocabulary_;
};

}  // namespace

std::unique_ptr<Drafter> MakeRandomDrafter(const DrafterParts& parts) {
  return std::make_unique<RandomDrafter>(parts.vocabulary);
}

}  // namespace foretoken
