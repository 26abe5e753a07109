#include <memory>
#include <utility>

#include "base/check.h"
#include "core/draft/model/model_drafter.h"
#include "core/draft/staged/text_stage.h"

namespace foretoken {
namespace {

// What a stage is made of. The target knows the tokens that the first one drafts behind, and no
// other's.
DrafterParts PartsOf(std::size_t stage, const DrafterParts& parts) {
  DrafterParts own = parts.Of(parts.members[stage]);
  own.on_target_kv = own.on_target_kv && stage == 0;
  return own;
}

// The last stage, which nobody drafts for.
std::unique_ptr<Stage> LastStage(const DrafterParts& parts) {
  const DrafterMember& member = parts.members.back();
  const DrafterParts own = PartsOf(parts.members.size() - 1, parts);
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
  std::unique_ptr<Stage> stage = LastStage(parts);
  for (std::size_t i = parts.members.size() - 1; i-- > 0;) {
    const DrafterId id = i == 0 ? DrafterId::kStaged : parts.members[i].id;
    stage = std::make_unique<ModelDrafter>(id, PartsOf(i, parts), std::move(stage));
  }
  return stage;
}

}  // namespace foretoken
