#include "core/draft/per_scope.h"
#include "core/draft/recycle/rank_tree.h"
#include "core/draft/registry.h"

namespace foretoken {
namespace {

// Some of the tree's nodes have tokens behind which nothing was said yet: others take their places.
constexpr int kRecycleNodes = 4 * kMaxProposal;

// Token Recycling (Luo et al., 2024, "Turning trash into treasure: accelerating inference of large
// language models with token recycling", arXiv 2408.08696): what the target said behind every token
// of a verified tree, rejected ones too, is what is proposed behind that token next. What is
// learned of a scope's texts is kept from sequence to sequence. Of prompts the last row only is
// heard.
class RecycleDrafter : public Drafter {
 public:
  explicit RecycleDrafter(int vocabulary)
      : tree_(RankProductTree(kRecycleNodes)),
        matrices_([vocabulary] { return SuccessorMatrix(vocabulary); }) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) {
      context.proposal->Clear();
      AppendRanks(tree_, matrices_.Use(context.scope), context);
      if (context.proposal->size() == 0) continue;
      context.proposal->source = ProposalSource::Of(DrafterId::kRecycle);
    }
  }

  void Observe(const VerifiedProposal& verified) override {
    matrices_.Use(verified.scope).Learn(verified);
  }

 private:
  RankTree tree_;
  PerScope<SuccessorMatrix> matrices_;
};

}  // namespace

std::unique_ptr<Drafter> MakeRecycleDrafter(const DrafterParts& parts) {
  return std::make_unique<RecycleDrafter>(parts.vocabulary);
}

}  // namespace foretoken
