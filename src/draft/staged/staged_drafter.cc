#include <memory>
#include <utility>

#include "base/check.h"
#include "draft/model/model_drafter.h"
#include "draft/staged/text_stage.h"

namespace foretoken {
namespace {

// The last stage, which nobody drafts for.
std::unique_ptr<Stage> LastStage(const DrafterMember& member, const DrafterParts& parts) {
  const DrafterParts own = parts.Of(member);
  if (IsDraftModel(member.id)) return std::make_unique<ModelDrafter>(member.id, own);
  return std::make_unique<TextStage>(MakeDrafter(member.id, own),
                                     /*keeps_nothing=*/member.id == DrafterId::kNgram,
                                     parts.max_sequences);
}

}  // namespace

// Staged speculative decoding (Spector and Re 2023; cascades: Chen et al. 2023): draft models, each
// of which drafts with the help of the next member, and proposes what it would propose alone.
std::unique_ptr<Drafter> MakeStagedDrafter(const DrafterParts& parts) {
  FT_CHECK(parts.members.size() >= 2, "{} stages", parts.members.size());
  std::unique_ptr<Stage> stage = LastStage(parts.members.back(), parts);
  for (std::size_t i = parts.members.size() - 1; i-- > 0;) {
    const DrafterMember& member = parts.members[i];
    const DrafterId id = i == 0 ? DrafterId::kStaged : member.id;
    stage = std::make_unique<ModelDrafter>(id, parts.Of(member), std::move(stage));
  }
  return stage;
}

}  // namespace foretoken
