#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/grammar/grammar.h"
#include "text/grammar/regular/pattern.h"
#include "text/grammar/regular/regular_language.h"

namespace foretoken {

/// How values are written.
enum class Spelling {
  kAny,  ///< In every way that JSON has.
  kOne,  ///< In one way each, spaces aside: texts that differ are values that differ.
};

/// A grammar of JSON texts while it is written. It begins with the rules of JSON itself.
class JsonGrammar {
 public:
  static constexpr std::size_t kMaxRules = 20000;
  static constexpr std::size_t kMaxSteps = 6000;  ///< From state to state, of one language.

  JsonGrammar();

  // Rules of JSON. kSpace is what may stand after an opening bracket, a comma or a colon and before
  // a closing bracket; kCharacter one character of a string, escaped where it must be.
  enum Base { kValue, kObject, kArray, kString, kCharacter, kNumber, kInteger, kSpace };
  Expression Rule(Base base, Spelling spelling) const;
  Expression Space() const { return Rule(kSpace, Spelling::kAny); }

  /// A rule more, empty so far. There may be more than kMaxRules for a while: ask full().
  int AddRule();
  void SetBody(int rule, Expression body) { grammar_.rules[rule].body = std::move(body); }
  bool full() const { return grammar_.rules.size() > kMaxRules; }

  /// A character of `ranges` (normalised) as it stands in a string.
  Expression Character(const std::vector<CodeRange>& ranges);
  /// A string whose content `pattern` is found in. Not for patterns that look ahead.
  Expression StringOf(const Pattern& pattern, Spelling spelling);
  /// Strings of a language, and numbers of one. Refuses (half a sentence) what is too large.
  Result<Expression> StringOf(const RegularLanguage& language);
  /// Names of members, without characters that would have to be escaped.
  Result<Expression> NameOf(const RegularLanguage& language);
  Result<Expression> NumberOf(const RegularLanguage& language);

  /// As text, once `root` is the rule to begin with. Refuses a grammar that matches nothing.
  Result<std::string> Write(int root) &&;

 private:
  Expression PatternPart(const Pattern& pattern);
  template <typename OfRanges>
  Result<int> AddLanguage(const RegularLanguage& language, const std::string& end,
                          OfRanges of_ranges);

  Grammar grammar_;
  std::map<std::vector<std::uint32_t>, int> characters_;  // The rules of classes, by their bounds.
};

/// Whether `pattern` can be written as a part of a grammar: without look-ahead, and with anchors
/// only where each of its outermost alternatives begins and ends.
bool IsPlain(const Pattern& pattern);

}  // namespace foretoken
