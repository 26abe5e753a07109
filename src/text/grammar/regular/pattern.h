#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/grammar/grammar.h"
#include "text/grammar/regular/regular_language.h"

namespace foretoken {

/// A regular expression as ECMA-262 writes it, or a part of one.
struct Pattern {
  enum class Kind {
    kClass,     ///< One character of `ranges`.
    kSequence,  ///< `parts` one after the other.
    kChoice,    ///< One of `parts`.
    kRepeat,    ///< parts[0], `min` to `max` times (Expression::kUnbounded: no limit).
    kBegin,     ///< Nothing, at the beginning of the text.
    kEnd,       ///< Nothing, at its end.
    kAhead,     ///< Nothing, where parts[0] follows.
    kNotAhead,  ///< Nothing, where parts[0] does not follow.
  };

  Kind kind = Kind::kSequence;
  std::vector<CodeRange> ranges;  ///< Normalised.
  int min = 0;
  int max = 0;
  std::vector<Pattern> parts;
};

/// Reads a regular expression. The error names the construct that is not supported.
Result<Pattern> ParsePattern(std::string_view text);

/// Texts in which `pattern` is found and that have `min` to `max` characters (-1: any number from
/// `min` on), again as a pattern: where one part of it has texts of several lengths and is a
/// repetition of single characters, which can be given other bounds. Nothing for other patterns.
std::optional<Pattern> WithLength(const Pattern& pattern, int min, int max);

/// The texts in which `pattern` is found: anchors are not implied. With `may_narrow`, long texts
/// may be left out where a look-ahead would need too large an automaton.
Result<RegularLanguage> LanguageOf(const Pattern& pattern, bool may_narrow);

}  // namespace foretoken
