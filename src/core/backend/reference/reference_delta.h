#pragma once

#include "core/backend/backend.h"

namespace foretoken::reference {

/// Backend::DeltaRule in plain loops, for every precision: the state before a row is made of the
/// positions on its path, from the first on, each time anew.
void DeltaRuleRows(const BatchPlan& plan, const DeltaWeights& weights, int layer, const float* x,
                   KvStore& kv, float* out);

}  // namespace foretoken::reference
