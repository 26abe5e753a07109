#include "prediction/cost_model.h"

namespace foretoken {

const ProposerModel* CostModel::proposer(Fallback fallback) const {
  switch (fallback) {
    case Fallback::kJit:
      return &draft_model;
    case Fallback::kNgram:
      return &ngram;
    case Fallback::kRetrieval:
      return &retrieval;
    case Fallback::kRandom:
      return &random;
    case Fallback::kNone:
    case Fallback::kAuto:
      break;
  }
  return nullptr;
}

const ProposerModel* CostModel::proposer(Mode mode) const {
  switch (mode) {
    case Mode::kSd:
    case Mode::kSsd:
      return &draft_model;
    case Mode::kNgram:
      return &ngram;
    case Mode::kSssd:
      return &retrieval;
    case Mode::kAr:
    case Mode::kRest:
    case Mode::kTrie:
    case Mode::kAuto:
      break;
  }
  return nullptr;
}

}  // namespace foretoken
