#pragma once

#include <vector>

#include "json/json.h"
#include "text/grammar/json/json_grammar.h"
#include "text/grammar/json/schema_demands.h"
#include "text/grammar/json/schema_document.h"
#include "text/grammar/regular/regular_language.h"

namespace foretoken {

// Values that are no objects and no arrays, as demanded. All refuse what is not supported.

/// The strings that meet the demands on strings.
RegularLanguage StringLanguage(const Demands& demands, const SchemaDocument& document);

/// Strings, and numbers of the types demanded, as parts of a grammar. Both may be narrower than
/// what is demanded: numbers in their digits, and long strings where a pattern or a format has to
/// be counted along.
Expression StringPart(const Demands& demands, Spelling spelling, const SchemaDocument& document,
                      JsonGrammar* grammar);
Expression NumberPart(const Demands& demands, Spelling spelling, const SchemaDocument& document,
                      JsonGrammar* grammar);

/// All values that meet the demands, if they are found to be `most` at most; none of them is an
/// object or an array.
std::optional<std::vector<Json>> FiniteValues(const Demands& demands, std::size_t most,
                                              const SchemaDocument& document);

/// The values that the demands list and that meet the others.
std::vector<Json> ListedValues(const Demands& demands, const SchemaDocument& document);

/// A value as it stands in the output.
Expression ValuePart(const Json& value, Spelling spelling);

}  // namespace foretoken
