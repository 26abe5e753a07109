#pragma once

#include <string_view>

#include "base/result.h"
#include "core/model/config/sublayers.h"

namespace foretoken {

/// Whether ModelSource::own_drafter names a draft that is the model itself without some sub-layers:
/// "exit=E", "exit=FOLDER" (UseTrainedExit) or "skip=WHICH".
bool IsSelfDraft(std::string_view own);

/// Which ones it leaves out of a model of so many layers whose identity has this fingerprint. E is
/// the number of layers that are run; WHICH is a list (ParseSkippedSublayers), or a file that
/// `foretoken skip-search` has written (SkipSet), refused where it was searched for another model.
Result<SkippedSublayers> ReadSelfDraft(std::string_view own, int layers,
                                       std::string_view fingerprint);

}  // namespace foretoken
