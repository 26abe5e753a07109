#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// What becomes of the spaces of texts in vocabularies of characters. A text is what lies between
/// two added tokens.
struct SpaceRule {
  /// Where a mark is put before a text.
  enum class Before {
    kNone,
    kEach,          ///< Before every text that is not empty.
    kEachWithout,   ///< Before every text that does not begin with one.
    kFirstWithout,  ///< Before the first text, if it does not begin with one.
  };
  Before before = Before::kNone;
  bool cut = false;            ///< Texts are cut into words, each of which begins with a mark.
  bool drops_leading = false;  ///< A space that begins an output is not shown.

  /// `text`, which is `first` or not, with marks for its spaces.
  std::string Marked(std::string_view text, bool first) const;
  /// Whether a text is the same with marks, wherever it stands.
  bool Keeps(std::string_view text) const;
  /// What of a marked text is merged by itself.
  std::vector<std::string_view> Words(std::string_view marked) const;
  /// Tells rules apart.
  std::string description() const;
};

/// The rule that a tokenizer.json's normalizer, pre_tokenizer and decoder come to; refuses, naming
/// it, what is none of the usual ways to write it. A sentence without a place.
Result<SpaceRule> SpaceRuleFromJson(const Json& tokenizer);

}  // namespace foretoken
