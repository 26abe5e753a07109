#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "core/engine/engine.h"

namespace foretoken {

/// What drafters that are made of others are made of (EngineOptions::stages and ensemble), each in
/// its order; none: not offered.
using MembersById = ByDrafter<std::vector<DrafterId>>;

/// The members of all `offered` modes: those that `config` names or, where it names none, all that
/// are there: so many draft models, and drafters of texts. An ensemble that was not `asked` for but
/// is there for mode auto is then one of texts alone: drafts have modes of their own beside it.
/// Refuses in one sentence members that are not there or cannot be members.
Result<MembersById> MembersOf(std::span<const Mode> asked, std::span<const Mode> offered,
                              const EngineConfig& config, std::size_t draft_models);

/// Whether some drafter is made of `id`.
bool IsMember(DrafterId id, const MembersById& members);

/// Refuses a stage that is a draft model of such a kind that it cannot be one, or drafts by text.
Status CheckStage(DrafterId id, const ModelConfig& draft, bool by_text);

}  // namespace foretoken
