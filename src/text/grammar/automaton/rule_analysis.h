#pragma once

#include <vector>

#include "base/result.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// What must be known of a grammar's rules before they are compiled.
struct RuleAnalysis {
  std::vector<bool> nullable;    ///< Matches the empty text.
  std::vector<bool> expandable;  ///< Small and of bounded length: better expanded than called.
  /// The rules that the root uses, each before those that it may call before taking a byte.
  std::vector<int> call_order;

  bool Nullable(const Expression& expression) const;
};

/// Refuses left recursion and rules that can never be matched to their end.
Result<RuleAnalysis> AnalyzeRules(const Grammar& grammar);

}  // namespace foretoken
