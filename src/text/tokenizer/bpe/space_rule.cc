#include "text/tokenizer/bpe/space_rule.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text/printable.h"
#include "base/text/text.h"
#include "json/fields.h"
#include "text/tokenizer/sentencepiece/pieces.h"

namespace foretoken {
namespace {

// The steps of a part of a tokenizer.json, which may be a sequence of them or nothing.
std::vector<Json> StepsOf(const Json& part, const char* list) {
  if (part.is_null()) return {};
  const Json& several = Field(part, list);
  if (Text(Field(part, "type")) == "Sequence" && several.is_array()) {
    return {several.begin(), several.end()};
  }
  return {part};
}

// Whether a step puts `content` in place of `pattern`.
bool Replaces(const Json& step, std::string_view pattern, std::string_view content) {
  return Text(Field(step, "type")) == "Replace" &&
         Text(Field(Field(step, "pattern"), "String")) == pattern &&
         Text(Field(step, "content")) == content;
}

class Reader {
 public:
  Result<SpaceRule> Read(const Json& tokenizer) {
    for (const Json& step : StepsOf(Field(tokenizer, "normalizer"), "normalizers")) {
      FT_RETURN_IF_ERROR(Normalizer(step));
    }
    for (const Json& step : StepsOf(Field(tokenizer, "pre_tokenizer"), "pretokenizers")) {
      FT_RETURN_IF_ERROR(PreTokenizer(step));
    }
    if (!marks_) {
      return InvalidInput("neither the normalizer nor the pre_tokenizer spells spaces as U+2581");
    }
    bool shows_spaces = false;
    for (const Json& step : StepsOf(Field(tokenizer, "decoder"), "decoders")) {
      FT_RETURN_IF_ERROR(Decoder(step, &shows_spaces));
    }
    if (!shows_spaces) return InvalidInput("the decoder leaves U+2581 as it is");
    return rule_;
  }

 private:
  static Error Cannot(const char* part, const Json& step) {
    return Invalid("the {} {} is not supported beside model.byte_fallback", part,
                   Printable(step.dump()));
  }

  Status Normalizer(const Json& step) {
    if (Replaces(step, " ", kSpaceMark)) {
      marks_ = true;
    } else if (Text(Field(step, "type")) == "Prepend" &&
               Text(Field(step, "prepend")) == kSpaceMark) {
      rule_.before = SpaceRule::Before::kEach;
    } else {
      return Cannot("normalizer", step);
    }
    return {};
  }

  Status PreTokenizer(const Json& step) {
    const std::string type = Text(Field(step, "type"));
    // There are no spaces left to cut at.
    if (type == "Split" && marks_ && Text(Field(Field(step, "pattern"), "String")) == " ")
      return {};
    if (type != "Metaspace" || Text(Field(step, "replacement")) != kSpaceMark) {
      return Cannot("pre_tokenizer", step);
    }
    const Json& prefix = Field(step, "add_prefix_space");
    std::string scheme = Text(Field(step, "prepend_scheme"));
    if (scheme.empty()) scheme = prefix.is_null() || Flag(prefix) ? "always" : "never";
    if (scheme == "always") {
      rule_.before = SpaceRule::Before::kEachWithout;
    } else if (scheme == "first") {
      rule_.before = SpaceRule::Before::kFirstWithout;
    } else if (scheme != "never") {
      return Cannot("pre_tokenizer", step);
    }
    const Json& cut = Field(step, "split");
    rule_.cut = cut.is_null() || Flag(cut);
    marks_ = true;
    return {};
  }

  Status Decoder(const Json& step, bool* shows_spaces) {
    const std::string type = Text(Field(step, "type"));
    const auto is = [&](const char* field, int number) {
      const Json& value = Field(step, field);
      return value.is_number_integer() && value.get<int>() == number;
    };
    if (Replaces(step, kSpaceMark, " ")) {
      *shows_spaces = true;
    } else if (type == "Strip" && Text(Field(step, "content")) == " " && is("start", 1) &&
               is("stop", 0)) {
      rule_.drops_leading = true;
    } else if (type != "ByteFallback" && type != "Fuse") {
      return Cannot("decoder", step);
    }
    return {};
  }

  SpaceRule rule_;
  bool marks_ = false;  // Spaces become marks.
};

}  // namespace

std::string SpaceRule::Marked(std::string_view text, bool first) const {
  std::string marked = ReplaceAll(text, " ", kSpaceMark);
  const bool without = !marked.starts_with(kSpaceMark);
  const bool put = before == Before::kEach || (before == Before::kEachWithout && without) ||
                   (before == Before::kFirstWithout && without && first);
  if (put && !marked.empty()) marked.insert(0, kSpaceMark);
  return marked;
}

bool SpaceRule::Keeps(std::string_view text) const {
  const bool spaces = text.find(' ') != text.npos || text.find(kSpaceMark) != text.npos;
  return before != Before::kEach && !spaces;
}

std::vector<std::string_view> SpaceRule::Words(std::string_view marked) const {
  std::vector<std::string_view> words;
  while (!marked.empty()) {
    const std::size_t end =
        cut ? std::min(marked.find(kSpaceMark, 1), marked.size()) : marked.size();
    words.push_back(marked.substr(0, end));
    marked.remove_prefix(end);
  }
  return words;
}

std::string SpaceRule::description() const {
  return fmt::format("{} {} {}", static_cast<int>(before), cut, drops_leading);
}

Result<SpaceRule> SpaceRuleFromJson(const Json& tokenizer) { return Reader().Read(tokenizer); }

}  // namespace foretoken
