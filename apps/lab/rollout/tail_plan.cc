#include "apps/lab/rollout/tail_plan.h"

#include <algorithm>

namespace foretoken {

std::optional<PlanOptions> TailPlan::For(int running) const {
  if (mode == Mode::kAr) return std::nullopt;
  const int of_each = rows / running - 1;  // Without the root.
  if (of_each < 1) return std::nullopt;
  PlanOptions plan;
  plan.mode = mode;
  if (mode.planned() || fixed) return plan;
  plan.lookahead = std::min(of_each, lookahead);
  if (Retrieves(mode)) plan.speculation_length = *plan.lookahead + 1;
  return plan;
}

}  // namespace foretoken
