#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "draft/drafter.h"
#include "foretoken/mode.h"
#include "model/model.h"

namespace foretoken {

/// What drafters are made of; each takes what it needs.
struct DrafterParts {
  int vocabulary = 0;
  int max_sequences = 0;           ///< That are decoded together.
  int max_context = 0;             ///< Tokens of a sequence.
  std::shared_ptr<Model> draft;    ///< Of drafters that need one; on the device they draft on.
  Backend* backend = nullptr;      ///< Of the target; outlives them.
  std::vector<DrafterId> members;  ///< Of drafters that are made of others, which `make` makes.
  std::function<std::unique_ptr<Drafter>(DrafterId)> make;
};

/// The drafter of an entry of the registry (foretoken/drafters.inc).
std::unique_ptr<Drafter> MakeDrafter(DrafterId id, const DrafterParts& parts);

// Each is defined in its drafter's folder.
#define FORETOKEN_DRAFTER(Id, ...) std::unique_ptr<Drafter> Make##Id##Drafter(const DrafterParts&);
#include "foretoken/drafters.inc"
#undef FORETOKEN_DRAFTER

}  // namespace foretoken
