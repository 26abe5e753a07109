#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/common/prompts.h"
#include "base/result.h"
#include "foretoken/tokenizer.h"
#include "foretoken/types.h"
#include "json/json.h"

namespace foretoken {

/// A prompt that samples are taken of.
struct RolloutPrompt {
  Json id;                     ///< A string or a whole number, of no other prompt.
  std::vector<Token> tokens;   ///< One at least.
  bool continues_text = true;  ///< As in Request.
};

/// How prompts become tokens. Borrowed.
struct PromptEncoding {
  const Tokenizer& tokenizer;
  bool raw = false;            ///< Texts are never chat turns.
  std::string variables = {};  ///< ChatInput::variables.
};

/// The prompts of one file of JSON lines. A line's prompt is `tokens` (ids), `messages` (a chat),
/// or what ParseJsonPrompts reads; its `id`, or else which prompt it is, from 1, counted on from
/// `before` (prompts of other files). `where` names the file in errors.
Result<std::vector<RolloutPrompt>> ParseRolloutPrompts(std::string_view content,
                                                       const std::string& where,
                                                       const PromptEncoding& encoding,
                                                       std::size_t before = 0);

/// The prompts of all chosen files, JSON lines or plain text, or else the built-in ones. Refuses
/// two with one id, and one that leaves no room in `context` (tokens) for output.
Result<std::vector<RolloutPrompt>> ReadRolloutPrompts(const PromptOptions& options,
                                                      const PromptEncoding& encoding, int context);

/// SHA-256 (hex) of ids and tokens.
std::string FingerprintOf(const std::vector<RolloutPrompt>& prompts);

/// The seed of a sample: the first 52 bits of SHA-256 of "SEED SAMPLE ID", the id as JSON, so that
/// every reader of JSON has it exactly.
std::uint64_t SampleSeed(std::uint64_t seed, const Json& prompt_id, int sample);

}  // namespace foretoken
