#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "text/tokenizer/bpe/regex.h"

namespace foretoken {

/// The pattern by which GPT-2 cuts text into words.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// Llama 3's, with up to three digits to a word; Qwen2 differs in one digit to a word.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Cuts text into the words that BPE never merges across: the `pre_tokenizer` of a tokenizer.json.
class PreTokenizer {
 public:
  /// One pattern whose matches, and the text between them, are words.
  static PreTokenizer FromPattern(std::string_view pattern);
  /// From the JSON of `pre_tokenizer`: Split, Punctuation, Digits and ByteLevel, which must be one
  /// of the steps of a Sequence. Anything else is an error that names the field.
  static Result<PreTokenizer> FromJson(const Json& json);

  /// Whether a space goes before a text that does not begin with one.
  bool add_prefix_space() const { return add_prefix_space_; }

  /// All that it does, as a text: two that cut alike by the same patterns have the same rules.
  const std::string& rules() const { return rules_; }

  /// The words of the valid UTF-8 `text`, in order. Where a pattern reaches its limits, the rest of
  /// the piece at hand stays whole.
  std::vector<std::string_view> Split(std::string_view text) const;

 private:
  enum class Keep { kBoth, kMatches, kGaps };
  struct Step {
    Regex regex;
    Keep keep;
    bool spelled;  // A step after ByteLevel, which sees words in the byte alphabet.
  };

  Status AddJson(const Json& json, bool may_nest);
  Status AddSplit(const Json& json);
  Status AddPunctuation(const Json& json);
  Status AddByteLevel(const Json& json);
  Status AddPattern(std::string_view pattern, bool literal, Keep keep);
  static void Cut(const Step& step, std::string_view word, std::vector<std::string_view>* words);

  std::vector<Step> steps_;
  std::string rules_;
  bool byte_level_ = false;
  bool add_prefix_space_ = false;
};

}  // namespace foretoken
