#pragma once

#include <cstdint>
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
};

/// JSON lines: the text of each object's `prompt`, `turns[0]` or `question`, the first that is
/// there. `where` names the file in errors, which give the line.
Result<std::vector<std::string>> ParseJsonPrompts(std::string_view content, std::string_view where);

/// Paragraphs (separated by blank lines) of plain text; only the first `words` words of each where
/// `words` is positive.
std::vector<std::string> ParseTextPrompts(std::string_view content, int words);

/// Reads a prompt file: JSON lines where its first character is '{', plain text otherwise.
Result<PromptSet> ReadPromptFile(const std::string& path, int words);

/// How prompts become tokens.
enum class PromptStyle {
  kAuto,  ///< As a chat turn where the tokenizer has a template and the file is not plain text.
  kChat,
  kRaw,
};

/// Tokens of one prompt: as a user's turn (with the system message, unless empty), or as raw text
/// after the beginning-of-sequence token.
Result<std::vector<Token>> EncodePrompt(const Tokenizer& tokenizer, std::string_view text,
                                        bool chat, std::string_view system = {});

/// A prompt set as tokens.
struct EncodedSet {
  std::string name;
  std::vector<std::vector<Token>> prompts;
  bool chat = false;
  int too_long = 0;  ///< Left out: prompt and output would not fit the context.
};

/// Encodes up to `limit` (0: all) prompts whose tokens fit `context` with `max_tokens` of output.
Result<EncodedSet> EncodeSet(const Tokenizer& tokenizer, const PromptSet& set, PromptStyle style,
                             int context, int max_tokens, int limit);

/// `count` prompts of `length` random tokens each, the same for the same seed: for models without
/// a tokenizer.
EncodedSet RandomSet(int vocabulary, int length, int count, std::uint64_t seed);

/// A built-in prompt that suits the bundled models.
struct BuiltInPrompt {
  std::string text;
  bool chat;
};
std::vector<BuiltInPrompt> BuiltInPrompts();

/// The built-in prompts as sets: the chat turns (where the tokenizer has a template) and the story
/// openings.
std::vector<PromptSet> BuiltInSets();

/// The sets of these files, or the built-in ones where there are none. Of plain text only the first
/// `words` words of each paragraph are taken; 0 takes all.
Result<std::vector<PromptSet>> ReadPromptSets(const std::vector<std::string>& files, int words);

/// Which prompts to measure or check.
struct PromptOptions {
  std::vector<std::string> files;  ///< Empty: the built-in ones.
  int limit = 0;                   ///< Of each file; 0: all.
  int words = 0;                   ///< Of each plain-text prompt; 0: all.
  bool raw = false;
  bool chat = false;  ///< bench only.
};

/// The chosen prompts as tokens that fit `context` with `max_tokens` of output.
Result<std::vector<EncodedSet>> EncodeSets(const PromptOptions& options, const Tokenizer& tokenizer,
                                           int context, int max_tokens);

}  // namespace foretoken
