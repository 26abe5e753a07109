#pragma once

#include <string>
#include <vector>

#include "text/grammar/grammar.h"

namespace foretoken {

// What programs that write grammars need. A choice without parts matches nothing.

Expression LiteralOf(std::string bytes);
Expression ClassOf(std::vector<CodeRange> ranges);
Expression RuleOf(int rule);
Expression SequenceOf(std::vector<Expression> parts);
Expression ChoiceOf(std::vector<Expression> parts);
Expression RepeatOf(Expression part, int min, int max);

/// Takes out the alternatives and rules that no text can match to its end. Returns whether the root
/// is left; where it is not, the grammar is of no use.
bool DropUnmatchable(Grammar* grammar);

/// The rules that the root uses, in ParseGrammar's notation. Parentheses are nested as deep as the
/// expressions are.
std::string GrammarText(const Grammar& grammar);

}  // namespace foretoken
