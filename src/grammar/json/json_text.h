#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"

namespace foretoken {

/// Grammar text (ParseGrammar's notation) for pieces of JSON. Unless said otherwise, the result is
/// one item: a literal, a class, a rule's name or a group.

/// Rules that the others refer to: value, object, array, string, char (one character of a string,
/// escaped where it must be), number, integer, fraction, and ws, the white space that may stand
/// after an opening bracket, a comma or a colon and before a closing bracket.
std::string_view JsonRules();

/// A character of `ranges` (normalised) as it stands in a string; nothing where none can.
std::optional<std::string> JsonCharacter(const std::vector<CodeRange>& ranges);

/// Integers from `first` to `last`, both within +-kMaxJsonInteger, first <= last.
inline constexpr std::int64_t kMaxJsonInteger = 9'999'999'999'999'999;
std::string JsonIntegers(std::int64_t first, std::int64_t last);

/// Numbers from `first` to `last`, those with a fraction among them.
std::string JsonNumbers(std::int64_t first, std::int64_t last);

/// What stands between the quotes of a string that matches a regular expression (the common part
/// of ECMA-262's and others'), searched for as JSON Schema does: anchors are not implied. The error
/// names the construct that is not supported.
Result<std::string> JsonStringPattern(std::string_view pattern);

/// What stands between the quotes of a string of a format ("date", "time", "date-time", "uuid",
/// "email", "ipv4"); nothing for others.
std::optional<std::string> JsonStringFormat(std::string_view format);

}  // namespace foretoken
