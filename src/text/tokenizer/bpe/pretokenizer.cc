#include "text/tokenizer/bpe/pretokenizer.h"

#include "base/text/utf8.h"
#include "json/fields.h"
#include "text/tokenizer/bpe/byte_alphabet.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxSteps = 8;

Error Unsupported(std::string_view what) {
  return Invalid("pre_tokenizer: {}; supported are Split, Punctuation, Digits and ByteLevel", what);
}

}  // namespace

PreTokenizer PreTokenizer::FromPattern(std::string_view pattern) {
  PreTokenizer result;
  const Status added = result.AddPattern(pattern, /*literal=*/false, Keep::kBoth);
  FT_CHECK(added.ok(), "{}", added.error().message);
  return result;
}

Result<PreTokenizer> PreTokenizer::FromJson(const Json& json) {
  PreTokenizer result;
  FT_RETURN_IF_ERROR(result.AddJson(json, /*may_nest=*/true));
  if (!result.byte_level_) return Unsupported("there is no ByteLevel step");
  return result;
}

Status PreTokenizer::AddJson(const Json& json, bool may_nest) {
  if (!json.is_object()) return Unsupported("it is not an object");
  if (steps_.size() == kMaxSteps) return Unsupported("there are too many steps");
  const std::string type = Text(Field(json, "type"));
  if (type == "ByteLevel") return AddByteLevel(json);
  if (type == "Split") return AddSplit(json);
  if (type == "Punctuation") return AddPunctuation(json);
  if (type == "Digits") {
    const bool individual = Flag(Field(json, "individual_digits"));
    return AddPattern(individual ? R"(\p{N})" : R"(\p{N}+)", /*literal=*/false, Keep::kBoth);
  }
  if (type == "Sequence" && may_nest) {
    const Json& steps = Field(json, "pretokenizers");
    if (!steps.is_array()) return Unsupported("a Sequence has no array 'pretokenizers'");
    for (const Json& step : steps) FT_RETURN_IF_ERROR(AddJson(step, /*may_nest=*/false));
    return {};
  }
  return Unsupported(fmt::format("the type '{}' is not supported", type));
}

Status PreTokenizer::AddByteLevel(const Json& json) {
  if (byte_level_) return Unsupported("there are two ByteLevel steps");
  add_prefix_space_ = Flag(Field(json, "add_prefix_space"), true);
  if (add_prefix_space_ && !steps_.empty()) {
    return Unsupported("ByteLevel with add_prefix_space must be the first step");
  }
  if (add_prefix_space_) rules_ += "a space before; ";
  if (Flag(Field(json, "use_regex"), true)) {
    FT_RETURN_IF_ERROR(AddPattern(kGpt2Pattern, /*literal=*/false, Keep::kBoth));
  }
  byte_level_ = true;
  return {};
}

Status PreTokenizer::AddPunctuation(const Json& json) {
  const std::string behavior = Text(Field(json, "behavior"));
  const bool contiguous = behavior == "Contiguous";
  if (!contiguous && !behavior.empty() && behavior != "Isolated") {
    return Unsupported(fmt::format("Punctuation with behavior '{}' is not supported", behavior));
  }
  return AddPattern(contiguous ? R"([\p{P}!-/:-@\[-`{-~]+)" : R"([\p{P}!-/:-@\[-`{-~])",
                    /*literal=*/false, Keep::kBoth);
}

Status PreTokenizer::AddSplit(const Json& json) {
  const Json& pattern = Field(json, "pattern");
  if (!pattern.is_object()) return Unsupported("Split has no pattern");
  const std::string behavior = Text(Field(json, "behavior"));
  const bool invert = Flag(Field(json, "invert"));
  Keep keep = Keep::kBoth;
  if (behavior == "Removed") {
    keep = invert ? Keep::kMatches : Keep::kGaps;
  } else if (behavior != "Isolated") {
    return Unsupported(fmt::format("Split with behavior '{}' is not supported", behavior));
  }
  const std::string regex = Text(Field(pattern, "Regex"));
  const std::string literal = Text(Field(pattern, "String"));
  if (regex.empty() == literal.empty()) {
    return Unsupported("Split needs a pattern that is a Regex or a String");
  }
  return regex.empty() ? AddPattern(literal, /*literal=*/true, keep)
                       : AddPattern(regex, /*literal=*/false, keep);
}

Status PreTokenizer::AddPattern(std::string_view pattern, bool literal, Keep keep) {
  Result<Regex> regex = Regex::Compile(pattern, literal);
  if (!regex.ok()) return InvalidInput("pre_tokenizer: " + regex.error().message);
  steps_.push_back({std::move(regex).value(), keep, byte_level_});
  // The length keeps patterns apart.
  rules_ += fmt::format("{}{}{} {} {}; ", static_cast<int>(keep), literal ? 'l' : 'r',
                        byte_level_ ? 's' : 't', pattern.size(), pattern);
  return {};
}

void PreTokenizer::Cut(const Step& step, std::string_view word,
                       std::vector<std::string_view>* words) {
  const std::string spelling = step.spelled ? SpellBytes(word) : std::string();
  const std::string_view seen = step.spelled ? spelling : word;
  std::size_t at = 0;
  // Takes what is seen up to `end` off the word. A character of the byte alphabet is one byte.
  const auto take = [&](std::size_t end, bool keep) {
    const std::string_view part = seen.substr(at, end - at);
    const std::size_t bytes = step.spelled ? CharactersIn(part) : part.size();
    if (keep && bytes > 0) words->push_back(word.substr(0, bytes));
    word.remove_prefix(bytes);
    at = end;
  };
  std::size_t begin = 0;
  std::size_t end = 0;
  while (step.regex.Find(seen, at, &begin, &end) == Regex::Found::kMatch) {
    take(begin, step.keep != Keep::kMatches);
    take(end, step.keep != Keep::kGaps);
  }
  take(seen.size(), step.keep != Keep::kMatches);
}

std::vector<std::string_view> PreTokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  std::vector<std::string_view> pieces;
  for (const Step& step : steps_) {
    pieces.swap(words);
    words.clear();
    for (const std::string_view piece : pieces) Cut(step, piece, &words);
  }
  return words;
}

}  // namespace foretoken
