#include "text/grammar/regular/unicode_property.h"

#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <algorithm>
#include <string>

#include "text/grammar/automaton/code_points.h"

namespace foretoken {
namespace {

// The properties that ECMA-262 lists; ICU knows more. What ECMA-262 has besides is made of others
// below.
constexpr UProperty kBinaryProperties[] = {
    UCHAR_ALPHABETIC,
    UCHAR_ASCII_HEX_DIGIT,
    UCHAR_BIDI_CONTROL,
    UCHAR_BIDI_MIRRORED,
    UCHAR_CASE_IGNORABLE,
    UCHAR_CASED,
    UCHAR_CHANGES_WHEN_CASEFOLDED,
    UCHAR_CHANGES_WHEN_CASEMAPPED,
    UCHAR_CHANGES_WHEN_LOWERCASED,
    UCHAR_CHANGES_WHEN_NFKC_CASEFOLDED,
    UCHAR_CHANGES_WHEN_TITLECASED,
    UCHAR_CHANGES_WHEN_UPPERCASED,
    UCHAR_DASH,
    UCHAR_DEFAULT_IGNORABLE_CODE_POINT,
    UCHAR_DEPRECATED,
    UCHAR_DIACRITIC,
    UCHAR_EMOJI,
    UCHAR_EMOJI_COMPONENT,
    UCHAR_EMOJI_MODIFIER,
    UCHAR_EMOJI_MODIFIER_BASE,
    UCHAR_EMOJI_PRESENTATION,
    UCHAR_EXTENDED_PICTOGRAPHIC,
    UCHAR_EXTENDER,
    UCHAR_GRAPHEME_BASE,
    UCHAR_GRAPHEME_EXTEND,
    UCHAR_HEX_DIGIT,
    UCHAR_IDS_BINARY_OPERATOR,
    UCHAR_IDS_TRINARY_OPERATOR,
    UCHAR_ID_CONTINUE,
    UCHAR_ID_START,
    UCHAR_IDEOGRAPHIC,
    UCHAR_JOIN_CONTROL,
    UCHAR_LOGICAL_ORDER_EXCEPTION,
    UCHAR_LOWERCASE,
    UCHAR_MATH,
    UCHAR_NONCHARACTER_CODE_POINT,
    UCHAR_PATTERN_SYNTAX,
    UCHAR_PATTERN_WHITE_SPACE,
    UCHAR_QUOTATION_MARK,
    UCHAR_RADICAL,
    UCHAR_REGIONAL_INDICATOR,
    UCHAR_S_TERM,
    UCHAR_SOFT_DOTTED,
    UCHAR_TERMINAL_PUNCTUATION,
    UCHAR_UNIFIED_IDEOGRAPH,
    UCHAR_UPPERCASE,
    UCHAR_VARIATION_SELECTOR,
    UCHAR_WHITE_SPACE,
    UCHAR_XID_CONTINUE,
    UCHAR_XID_START,
};

// Whether `name` is one of those that `name_of` gives, exactly: ICU finds names in other spellings.
// The short name may be missing.
template <typename NameOf>
bool IsOneOf(std::string_view name, NameOf name_of) {
  for (int i = U_SHORT_PROPERTY_NAME;; ++i) {
    const char* const known = name_of(static_cast<UPropertyNameChoice>(i));
    if (known != nullptr && name == known) return true;
    if (known == nullptr && i != U_SHORT_PROPERTY_NAME) return false;
  }
}

// The value of `property` that is called `name`; nothing where none is.
std::optional<int> ValueOf(UProperty property, const std::string& name) {
  const int value = u_getPropertyValueEnum(property, name.c_str());
  const bool exact = IsOneOf(name, [&](UPropertyNameChoice choice) {
    return u_getPropertyValueName(property, value, choice);
  });
  return exact ? std::optional(value) : std::nullopt;
}

// Nothing where no character has the value: ICU knows scripts that Unicode does not have.
std::optional<std::vector<CodeRange>> CharactersWith(UProperty property, std::optional<int> value) {
  if (!value.has_value()) return std::nullopt;
  UErrorCode status = U_ZERO_ERROR;
  icu::UnicodeSet set;
  set.applyIntPropertyValue(property, *value, status);
  if (U_FAILURE(status) || set.isEmpty()) return std::nullopt;
  std::vector<CodeRange> ranges;
  for (int i = 0; i < set.getRangeCount(); ++i) {
    ranges.push_back({static_cast<std::uint32_t>(set.getRangeStart(i)),
                      static_cast<std::uint32_t>(set.getRangeEnd(i))});
  }
  return NormalizeRanges(std::move(ranges));
}

}  // namespace

std::optional<std::vector<CodeRange>> UnicodeProperty(std::string_view name) {
  const std::size_t equals = name.find('=');
  const std::string value(name.substr(equals == name.npos ? 0 : equals + 1));
  const std::string_view property = name.substr(0, equals == name.npos ? 0 : equals);
  const auto with_value = [&](UProperty known) {
    return CharactersWith(known, ValueOf(known, value));
  };
  if (property == "Script" || property == "sc") return with_value(UCHAR_SCRIPT);
  if (property == "Script_Extensions" || property == "scx") {
    return CharactersWith(UCHAR_SCRIPT_EXTENSIONS, ValueOf(UCHAR_SCRIPT, value));
  }
  if (property == "General_Category" || property == "gc") {
    return with_value(UCHAR_GENERAL_CATEGORY_MASK);
  }
  if (equals != name.npos) return std::nullopt;
  if (value == "Any") return ComplementRanges({});
  if (value == "ASCII") return {{{0, 0x7F}}};
  if (value == "Assigned") {
    return CharactersWith(UCHAR_GENERAL_CATEGORY_MASK, ~static_cast<int>(U_GC_CN_MASK));
  }
  for (const UProperty binary : kBinaryProperties) {
    const bool exact = IsOneOf(
        value, [&](UPropertyNameChoice choice) { return u_getPropertyName(binary, choice); });
    if (exact) return CharactersWith(binary, 1);
  }
  return with_value(UCHAR_GENERAL_CATEGORY_MASK);
}

}  // namespace foretoken
