#include "text/grammar/json/scalar_language.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "text/grammar/grammar_text.h"
#include "text/grammar/json/string_format.h"
#include "text/grammar/regular/decimal_language.h"

namespace foretoken {
namespace {

constexpr bool kFlags[] = {true, false};
constexpr int kMaxDigits = 40;  // Before the point, where bounds ask for as many.
// The least limit up to which lengths are counted along with something else: most strings do not
// reach it.
constexpr int kFewestCounted = 16;

// The regular expression of a demand on a string.
struct StringDemand {
  KeywordDemand demand;
  Pattern pattern;
};

// Without what leaves all strings, like formats that say nothing of the text.
std::vector<StringDemand> ReadStringDemands(const Demands& demands,
                                            const SchemaDocument& document) {
  std::vector<StringDemand> read;
  for (const KeywordDemand& demand : demands.strings) {
    const Json& schema = *demand.schema;
    auto text = schema[demand.keyword].get<std::string>();
    if (std::string_view(demand.keyword) == "format") text = FormatPattern(text);
    Result<Pattern> pattern = ParsePattern(text);
    if (!pattern.ok()) document.Refuse(schema, pattern.error().message);
    if (!text.empty() || demand.negated) read.push_back({demand, std::move(pattern).value()});
  }
  return read;
}

RegularLanguage Without(const RegularLanguage& language, const RegularLanguage& taken,
                        const Json& schema, const SchemaDocument& document) {
  return document.Take(language.Intersect(taken.Complement()), schema, "what it excludes");
}

// The strings that meet all demands but that on the length.
RegularLanguage UncountedStrings(const Demands& demands, const SchemaDocument& document) {
  RegularLanguage language;
  for (const auto& [demand, pattern] : ReadStringDemands(demands, document)) {
    const std::string subject = fmt::format("'{}'", demand.keyword);
    RegularLanguage one =
        document.Take(LanguageOf(pattern, !demand.negated), *demand.schema, subject);
    if (demand.negated) one = one.Complement();
    language = document.Take(language.Intersect(one), *demand.schema,
                             subject + " beside other keywords of the string");
  }
  std::vector<std::string> excluded;
  for (const Json& value : demands.excluded) {
    if (value.is_string()) excluded.push_back(value);
  }
  if (excluded.empty()) return language;
  const auto taken = document.Take(RegularLanguage::OfTexts(excluded), document.root(), "'enum'");
  return Without(language, taken, document.root(), document);
}

Decimal DecimalOf(const Json& value) {
  if (value.is_number_unsigned()) return Decimal::Of(value.get<std::uint64_t>());
  if (value.is_number_integer()) return Decimal::Of(value.get<std::int64_t>());
  return Decimal::Of(value.get<double>());
}

RegularLanguage BoundLanguage(const KeywordDemand& demand, const SchemaDocument& document) {
  const std::string_view keyword = demand.keyword;
  const Json& value = (*demand.schema)[demand.keyword];
  const Decimal decimal = DecimalOf(value);
  const std::string subject = fmt::format("'{}'", keyword);
  RegularLanguage language;
  if (keyword == "multipleOf") {
    if (decimal.negative || decimal.digits.empty()) {
      document.Refuse(*demand.schema, "'multipleOf' must be a number above zero");
    }
    language = document.Take(DecimalMultiples(decimal), *demand.schema, subject);
  } else {
    // Up to a bound is not above it.
    const bool from = keyword == "minimum" || keyword == "exclusiveMinimum";
    const bool exclusive = keyword == "exclusiveMinimum" || keyword == "maximum";
    language = document.Take(DecimalsFrom(decimal, exclusive), *demand.schema, subject);
    if (!from) language = language.Complement();
  }
  return demand.negated ? language.Complement() : language;
}

// What the demands on numbers leave; only texts that are numbers count.
RegularLanguage NumberLanguage(const Demands& demands, const SchemaDocument& document) {
  RegularLanguage language;
  for (const KeywordDemand& demand : demands.numbers) {
    language =
        document.Take(language.Intersect(BoundLanguage(demand, document)), *demand.schema,
                      fmt::format("'{}' beside other keywords of the number", demand.keyword));
  }
  if ((demands.types & kNumberTypes) == kFractionType) {
    const auto whole =
        document.Take(DecimalMultiples(Decimal::Of(std::int64_t{1})), document.root(), "'integer'");
    language = Without(language, whole, document.root(), document);
  }
  for (const Json& value : demands.excluded) {
    if (!value.is_number()) continue;
    const auto same = document.Take(DecimalsEqualTo(DecimalOf(value)), document.root(), "'enum'");
    language = Without(language, same, document.root(), document);
  }
  return language;
}

Result<RegularLanguage> WithDigits(const RegularLanguage& language, ValueTypes types, int digits,
                                   Spelling spelling) {
  const bool whole = (types & kFractionType) == 0;
  FT_ASSIGN_OR_RETURN(auto syntax, DecimalSyntax(whole, digits));
  if (spelling == Spelling::kOne && !whole) {
    const auto pattern = ParsePattern(R"(^(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9])$)");
    FT_ASSIGN_OR_RETURN(const auto one, LanguageOf(pattern.value(), /*may_narrow=*/false));
    FT_ASSIGN_OR_RETURN(syntax, syntax.Intersect(one));
  }
  return syntax.Intersect(language);
}

bool MeetsNumbers(const Json& value, const RegularLanguage& language) {
  return language.Has(DecimalOf(value).Text());
}

// Any string of a length.
Expression StringOfLength(const CountDemand& length, Spelling spelling, JsonGrammar* grammar) {
  if (length.free()) return grammar->Rule(JsonGrammar::kString, spelling);
  const Expression character = grammar->Rule(JsonGrammar::kCharacter, spelling);
  return SequenceOf(
      {LiteralOf("\""), RepeatOf(character, length.min, length.max), LiteralOf("\"")});
}

}  // namespace

RegularLanguage StringLanguage(const Demands& demands, const SchemaDocument& document) {
  const RegularLanguage language = UncountedStrings(demands, document);
  if (demands.length.free()) return language;
  const Json& at = demands.strings.empty() ? document.root() : *demands.strings[0].schema;
  const auto length = document.Take(
      RegularLanguage::OfLength(demands.length.min, demands.length.max), at, "'maxLength'");
  return document.Take(language.Intersect(length), at, "a length beside 'pattern' or 'format'");
}

Expression StringPart(const Demands& demands, Spelling spelling, const SchemaDocument& document,
                      JsonGrammar* grammar) {
  const bool excludes = std::ranges::any_of(demands.excluded, &Json::is_string);
  const CountDemand& length = demands.length;
  if (length.max >= 0 && length.max < length.min) return ChoiceOf({});
  const std::vector<StringDemand> read = ReadStringDemands(demands, document);
  if (read.empty() && !excludes) return StringOfLength(length, spelling, grammar);
  if (read.size() == 1 && !read[0].demand.negated && !excludes) {
    std::optional<Pattern> pattern = read[0].pattern;
    if (!length.free()) pattern = WithLength(*pattern, length.min, length.max);
    if (pattern.has_value() && IsPlain(*pattern)) return grammar->StringOf(*pattern, spelling);
  }
  const Json& at = demands.strings.empty() ? document.root() : *demands.strings[0].schema;
  const RegularLanguage uncounted = UncountedStrings(demands, document);
  // Counting along takes steps for each character: shorter strings may have to do.
  std::size_t steps = 0;
  for (const auto& state : uncounted.states()) steps += state.steps.size();
  const int fitting = 2 * JsonGrammar::kMaxSteps / steps;
  const int longest = std::min(length.max, std::max({kFewestCounted, length.min, fitting}));
  for (int max = longest;; max /= 2) {
    const bool last = max < 2 * std::max(kFewestCounted, length.min);
    const auto counted = RegularLanguage::OfLength(length.min, max);
    Result<RegularLanguage> language = counted.ok() ? uncounted.Intersect(*counted) : counted;
    Result<Expression> part =
        language.ok() ? grammar->StringOf(*language) : Result<Expression>(language.error());
    const bool emptied = max != length.max && language.ok() && language->empty();
    if (emptied) part = InvalidInput("needs too many states");
    if (part.ok() || last || emptied) {
      return document.Take(std::move(part), at, "a length beside 'pattern' or 'format'");
    }
  }
}

Expression NumberPart(const Demands& demands, Spelling spelling, const SchemaDocument& document,
                      JsonGrammar* grammar) {
  const ValueTypes types = demands.types & kNumberTypes;
  const bool excludes =
      std::ranges::any_of(demands.excluded, [](const Json& value) { return value.is_number(); });
  if (demands.numbers.empty() && !excludes && types != kFractionType) {
    return grammar->Rule(types == kWholeType ? JsonGrammar::kInteger : JsonGrammar::kNumber,
                         spelling);
  }
  int wanted = kDecimalDigits;
  for (const KeywordDemand& demand : demands.numbers) {
    const int point = DecimalOf((*demand.schema)[demand.keyword]).point;
    if (point <= kMaxDigits) wanted = std::max(wanted, point);
  }
  const Json& at = demands.numbers.empty() ? document.root() : *demands.numbers[0].schema;
  const RegularLanguage language = NumberLanguage(demands, document);
  // Remainders take states for each digit: fewer digits then have to do.
  for (int digits = wanted;; digits /= 2) {
    const auto written = WithDigits(language, types, digits, spelling);
    Result<Expression> part =
        written.ok() ? grammar->NumberOf(*written) : Result<Expression>(written.error());
    const bool emptied = digits != wanted && written.ok() && written->empty();
    if (emptied) part = InvalidInput("needs too many states");
    if (part.ok() || digits < 8 || emptied) {
      return document.Take(std::move(part), at, "what it demands of a number");
    }
  }
}

std::vector<Json> ListedValues(const Demands& demands, const SchemaDocument& document) {
  std::optional<RegularLanguage> strings;
  std::optional<RegularLanguage> numbers;
  std::vector<Json> values;
  for (const Json& value : *demands.values) {
    if ((TypeOf(value) & demands.types) == 0 ||
        std::ranges::find(demands.excluded, value) != demands.excluded.end()) {
      continue;
    }
    if (value.is_string() && !(demands.strings.empty() && demands.length.free())) {
      if (!strings.has_value()) strings = StringLanguage(demands, document);
      if (!strings->Has(value.text())) continue;
    }
    if (value.is_number() && !demands.numbers.empty()) {
      if (!numbers.has_value()) numbers = NumberLanguage(demands, document);
      if (!MeetsNumbers(value, *numbers)) continue;
    }
    values.push_back(value);
  }
  return values;
}

std::optional<std::vector<Json>> FiniteValues(const Demands& demands, std::size_t most,
                                              const SchemaDocument& document) {
  if (demands.values.has_value()) return ListedValues(demands, document);
  if ((demands.types & (kObjectType | kArrayType | kFractionType)) != 0) return std::nullopt;
  std::vector<Json> values;
  if ((demands.types & kNullType) != 0) values.push_back(nullptr);
  if ((demands.types & kBooleanType) != 0)
    values.insert(values.end(), std::begin(kFlags), std::end(kFlags));
  if ((demands.types & kStringType) != 0) {
    const auto texts = StringLanguage(demands, document).Texts(most);
    if (!texts.has_value()) return std::nullopt;
    values.insert(values.end(), texts->begin(), texts->end());
  }
  if ((demands.types & kWholeType) != 0) {
    const auto numbers = document.Take(
        WithDigits(NumberLanguage(demands, document), kWholeType, kDecimalDigits, Spelling::kOne),
        document.root(), "what it demands of a number");
    const auto texts = numbers.Texts(most);
    if (!texts.has_value()) return std::nullopt;
    for (const std::string& text : *texts) values.push_back(Json::Parse(text));
  }
  std::erase_if(values, [&](const Json& value) {
    return std::ranges::find(demands.excluded, value) != demands.excluded.end();
  });
  return values;
}

Expression ValuePart(const Json& value, Spelling spelling) {
  const Expression written = LiteralOf(value.dump());
  if (value.is_number_float() && spelling == Spelling::kOne) {
    return LiteralOf(DecimalOf(value).Text());
  }
  if (!value.is_number_float() || TypeOf(value) != kWholeType) return written;
  return ChoiceOf({LiteralOf(DecimalOf(value).Text()), written});
}

}  // namespace foretoken
