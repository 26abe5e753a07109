#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/grammar/chat/reasoning_limit.h"

namespace foretoken {

inline constexpr std::size_t kMaxGrammarBytes = std::size_t{256} * 1024;
inline constexpr int kMaxRepetitions = 20000;  ///< The largest m and n of {m,n}.

/// Code points first to last.
struct CodeRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

/// What a rule, or a part of one, matches.
struct Expression {
  enum class Kind {
    kLiteral,      ///< The bytes of `literal`; may be empty.
    kClass,        ///< One character of `ranges`.
    kRule,         ///< What rule `rule` matches.
    kSequence,     ///< `parts` one after the other.
    kChoice,       ///< One of `parts`.
    kRepeat,       ///< parts[0], `min` to `max` times.
    kBeginUnique,  ///< "[", with which a JSON list begins whose items all differ (UniqueLists).
  };
  static constexpr int kUnbounded = -1;

  Kind kind = Kind::kLiteral;
  std::string literal;
  std::vector<CodeRange> ranges;  ///< Ascending, disjoint and never empty; no surrogates.
  int rule = -1;
  int min = 0;
  int max = 0;  ///< kUnbounded: no limit.
  std::vector<Expression> parts;
};

struct GrammarRule {
  std::string name;
  Expression body;
};

/// A context-free grammar over Unicode text.
struct Grammar {
  std::vector<GrammarRule> rules;
  int root = 0;
  /// A limit that its texts keep to besides.
  std::optional<ReasoningLimit> reasoning = std::nullopt;
};

/// Reads a grammar in the notation that llama.cpp made known as GBNF (docs/do/constrain.md
/// describes it). Refuses what is wrong with one sentence that names line and column. Every rule
/// reference of the result is valid; whether the grammar makes sense is for Automaton to find out.
Result<Grammar> ParseGrammar(std::string_view text);

/// `text` (UTF-8) as a quoted literal of the notation.
std::string GrammarLiteral(std::string_view text);

}  // namespace foretoken
