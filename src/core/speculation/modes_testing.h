#pragma once

#include "foretoken/mode.h"

namespace foretoken {

inline constexpr Mode kSd2{Schedule::kBefore, DrafterId::kModel2};
inline constexpr Mode kStaged{Schedule::kBefore, DrafterId::kStaged};
inline constexpr Mode kEnsemble{Schedule::kBefore, DrafterId::kEnsemble};

}  // namespace foretoken
