#include "prediction/cost_model.h"

namespace foretoken {

const ProposerModel* CostModel::proposer(Fallback fallback) const {
  switch (fallback.kind) {
    case Fallback::Kind::kJit:
      return &draft_model();
    case Fallback::Kind::kDrafter:
      return &proposers[fallback.drafter];
    case Fallback::Kind::kNone:
    case Fallback::Kind::kAuto:
      break;
  }
  return nullptr;
}

const ProposerModel* CostModel::proposer(Mode mode) const {
  return mode.drafts() && !InfoOf(mode.drafter).baseline ? &proposers[mode.drafter] : nullptr;
}

}  // namespace foretoken
