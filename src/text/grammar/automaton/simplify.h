#pragma once

#include "text/grammar/automaton/rule_analysis.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// The same language, read in fewer ways: repetitions of what may be empty or is a repetition
/// itself become one (`(a?){50}` is `a{0,50}`), neighbours that repeat the same join (`a a?` is
/// `a{1,2}`), also where rules that are no more than that stand in between, and alternatives that
/// are written twice are kept once. `analysis` is of `grammar`.
Grammar Simplify(const Grammar& grammar, const RuleAnalysis& analysis);

}  // namespace foretoken
