#include "tokenizer/bpe/pretokenizer.h"

#include <string>

#include "json/fields.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxSteps = 8;

Error Unsupported(std::string_view what) {
  return InvalidInput(fmt::format(
      "pre_tokenizer: {}; supported are Split, Digits and ByteLevel, ending with ByteLevel", what));
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
  if (byte_level_) return Unsupported("a step follows ByteLevel");
  if (steps_.size() == kMaxSteps) return Unsupported("there are too many steps");
  const std::string type = Text(Field(json, "type"));
  if (type == "ByteLevel") return AddByteLevel(json);
  if (type == "Split") return AddSplit(json);
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
  byte_level_ = true;
  add_prefix_space_ = Flag(Field(json, "add_prefix_space"), true);
  if (add_prefix_space_ && !steps_.empty()) {
    return Unsupported("ByteLevel with add_prefix_space must be the only step");
  }
  if (!Flag(Field(json, "use_regex"), true)) return {};
  return AddPattern(kGpt2Pattern, /*literal=*/false, Keep::kBoth);
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
  steps_.push_back({std::move(regex).value(), keep});
  return {};
}

std::vector<std::string_view> PreTokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  std::vector<std::string_view> pieces;
  for (const Step& step : steps_) {
    pieces.swap(words);
    words.clear();
    for (const std::string_view piece : pieces) {
      std::size_t at = 0;
      std::size_t begin = 0;
      std::size_t end = 0;
      while (step.regex.Find(piece, at, &begin, &end) == Regex::Found::kMatch) {
        if (begin > at && step.keep != Keep::kMatches)
          words.push_back(piece.substr(at, begin - at));
        if (step.keep != Keep::kGaps) words.push_back(piece.substr(begin, end - begin));
        at = end;
      }
      if (at < piece.size() && step.keep != Keep::kMatches) words.push_back(piece.substr(at));
    }
  }
  return words;
}

}  // namespace foretoken
