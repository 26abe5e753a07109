#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/tokenizer.h"
#include "foretoken/types.h"

namespace foretoken {

/// The prompts of one file.
struct PromptSet {
  std::string name;  ///< The file's name without its folder.
  std::vector<std::string> prompts;
  bool plain_text = false;  ///< Openings to be continued, rather than questions to be answered.
  std::vector<std::string> answers = {};  ///< To each, where the file has them; "" where not.
};

/// JSON lines: the text of each object's `prompt`, `turns[0]` or `question`, the first that is
/// there, and of its `answer` or `reference[0]`. `where` names the file in errors, which give the
/// line. The set has no name yet.
Result<PromptSet> ParseJsonPrompts(std::string_view content, std::string_view where);

/// Paragraphs (separated by blank lines) of plain text; only the first `words` words of each where
/// a number is given.
std::vector<std::string> ParseTextPrompts(std::string_view content, std::optional<int> words);

/// Reads a prompt file: JSON lines where its first character is '{', plain text otherwise.
Result<PromptSet> ReadPromptFile(const std::string& path, std::optional<int> words);

/// Which prompts to measure or check, and how they become tokens.
struct PromptOptions {
  std::vector<std::string> files;  ///< Empty: the built-in ones.
  std::optional<int> limit;        ///< Prompts of each file; none: all.
  std::optional<int> words;        ///< Words of each plain-text prompt; none: all.
  bool raw = false;
  bool chat = false;  ///< bench only.

  /// Whether the prompts of a set are chat turns, where there is a template for them.
  bool AsChat(const PromptSet& set) const { return chat || (!raw && !set.plain_text); }
};

/// Tokens of one prompt: as a user's turn, or as raw text after the beginning-of-sequence token.
Result<std::vector<Token>> EncodePrompt(const Tokenizer& tokenizer, std::string_view text,
                                        bool chat);
/// Tokens of a user's turn, with the system message unless it is empty, and what the chat template
/// is told besides: a JSON object, or nothing.
Result<std::vector<Token>> EncodeQuestion(const Tokenizer& tokenizer, std::string_view text,
                                          std::string_view system, std::string_view variables);

/// A prompt set as tokens.
struct EncodedSet {
  std::string name;
  std::vector<std::vector<Token>> prompts;
  std::vector<std::string> answers;  ///< As PromptSet's.
  bool chat = false;
  int too_long = 0;  ///< Left out: prompt and output would not fit the context.
};

/// Encodes up to `options.limit` prompts whose tokens fit `context` with `max_tokens` of output.
Result<EncodedSet> EncodeSet(const Tokenizer& tokenizer, const PromptSet& set,
                             const PromptOptions& options, int context, int max_tokens);

/// `count` prompts of `length` random tokens each, the same for the same seed: for models without
/// a tokenizer.
EncodedSet RandomSet(int vocabulary, int length, int count, std::uint64_t seed);

/// The built-in prompts, which suit the bundled models: chat turns and story openings.
std::vector<PromptSet> BuiltInSets();

/// The sets of the chosen files, or the built-in ones where there are none.
Result<std::vector<PromptSet>> ReadPromptSets(const PromptOptions& options);

/// The chosen prompts as tokens that fit `context` with `max_tokens` of output.
Result<std::vector<EncodedSet>> EncodeSets(const PromptOptions& options, const Tokenizer& tokenizer,
                                           int context, int max_tokens);

}  // namespace foretoken
