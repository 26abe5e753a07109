#include "apps/lab/rollout/rollout_prompts.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include "base/files/read_text.h"
#include "base/numbers/integers.h"
#include "base/numbers/sha256.h"
#include "base/text/text.h"

namespace foretoken {
namespace {

Result<std::vector<Token>> TokensOf(const Json& list, int vocabulary, const std::string& where) {
  std::vector<Token> tokens;
  for (const Json& entry : list) {
    const bool good = entry.is_number_integer() && entry.get<std::int64_t>() >= 0 &&
                      entry.get<std::int64_t>() < vocabulary;
    if (!good) {
      return Invalid("{}: 'tokens' has {}, but the target's are 0 to {}", where, entry.dump(),
                     vocabulary - 1);
    }
    tokens.push_back(entry.get<Token>());
  }
  if (tokens.empty()) return Invalid("{}: 'tokens' is empty", where);
  return tokens;
}

Result<std::vector<Token>> ChatOf(const Json& messages, const PromptEncoding& encoding,
                                  const std::string& where) {
  ChatInput chat{.messages = {}, .variables = encoding.variables, .now = LocalTime()};
  for (const Json& message : messages) {
    const auto text = [&message](const char* name) -> const std::string* {
      const auto found = message.find(name);
      return found == message.end() ? nullptr : found->is_string() ? &found->text() : nullptr;
    };
    const std::string* const role = message.is_object() ? text("role") : nullptr;
    const std::string* const content = role == nullptr ? nullptr : text("content");
    if (content == nullptr) {
      return Invalid("{}: 'messages' has something without the texts 'role' and 'content'", where);
    }
    chat.messages.push_back({*role, *content});
  }
  auto tokens = encoding.tokenizer.EncodeChat(chat);
  if (!tokens.ok()) {
    return Invalid("{}: {}", where, tokens.error().message);
  }
  if (tokens->empty()) {
    return Invalid("{}: the chat template writes nothing for it", where);
  }
  return tokens;
}

Result<std::vector<Token>> Encode(const PromptEncoding& encoding, std::string_view text,
                                  bool chat) {
  return chat ? EncodeQuestion(encoding.tokenizer, text, {}, encoding.variables)
              : EncodePrompt(encoding.tokenizer, text, /*chat=*/false);
}

// Without its id.
Result<RolloutPrompt> ParseLine(const std::string& line, const Json& object,
                                const std::string& where, const PromptEncoding& encoding) {
  RolloutPrompt prompt;
  for (const char* key : {"tokens", "messages"}) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    if (!found->is_array()) return Invalid("{}: '{}' is no list", where, key);
    const bool chat = *key == 'm';
    prompt.continues_text = !chat;
    FT_ASSIGN_OR_RETURN(prompt.tokens,
                        chat ? ChatOf(*found, encoding, where)
                             : TokensOf(*found, encoding.tokenizer.vocabulary(), where));
    return prompt;
  }
  FT_ASSIGN_OR_RETURN(const PromptSet set, ParseJsonPrompts(line, where));
  const bool chat = !encoding.raw && encoding.tokenizer.has_chat_template();
  prompt.continues_text = !chat;
  FT_ASSIGN_OR_RETURN(prompt.tokens, Encode(encoding, set.prompts.front(), chat));
  return prompt;
}

Result<Json> IdOf(const Json& object, std::size_t number, const std::string& where) {
  const auto id = object.find("id");
  if (id == object.end() || id->is_null()) return Json(number);
  if (id->is_string() || id->is_number_integer()) return *id;
  return Invalid("{}: 'id' is neither a text nor a whole number", where);
}

Status CheckIds(const std::vector<RolloutPrompt>& prompts) {
  std::set<std::string> ids;
  for (const RolloutPrompt& prompt : prompts) {
    if (ids.insert(prompt.id.dump()).second) continue;
    return Invalid(
        "two prompts have the id {}: samples are told apart by it, so give each one of its own",
        prompt.id.dump());
  }
  return {};
}

// How many of a file's `count` are wanted.
std::size_t Wanted(const PromptOptions& options, std::size_t count) {
  return options.limit ? std::min(count, Size(*options.limit)) : count;
}

// Prompts of plain text, or built in.
Status AddTexts(const PromptSet& set, const PromptOptions& options, const PromptEncoding& encoding,
                std::vector<RolloutPrompt>* prompts) {
  const bool chat = encoding.tokenizer.has_chat_template() && options.AsChat(set);
  for (const std::string& text :
       std::span(set.prompts).first(Wanted(options, set.prompts.size()))) {
    RolloutPrompt prompt{.id = prompts->size() + 1, .tokens = {}, .continues_text = !chat};
    FT_ASSIGN_OR_RETURN(prompt.tokens, Encode(encoding, text, chat));
    prompts->push_back(std::move(prompt));
  }
  return {};
}

Status AddFile(const std::string& path, const PromptOptions& options,
               const PromptEncoding& encoding, std::vector<RolloutPrompt>* prompts) {
  const Result<std::string> content = ReadText(path);
  if (!content.ok()) {
    return Invalid("cannot read the prompt file '{}': {}", path, content.error().message);
  }
  if (!Trim(*content).starts_with('{')) {
    FT_ASSIGN_OR_RETURN(const PromptSet set, ReadPromptFile(path, options.words));
    return AddTexts(set, options, encoding, prompts);
  }
  FT_ASSIGN_OR_RETURN(auto read, ParseRolloutPrompts(*content, path, encoding, prompts->size()));
  read.resize(Wanted(options, read.size()));
  std::ranges::move(read, std::back_inserter(*prompts));
  return {};
}

}  // namespace

Result<std::vector<RolloutPrompt>> ParseRolloutPrompts(std::string_view content,
                                                       const std::string& where,
                                                       const PromptEncoding& encoding,
                                                       std::size_t before) {
  std::vector<RolloutPrompt> prompts;
  std::istringstream lines{std::string(content)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (Trim(line).empty()) continue;
    const std::string place = fmt::format("{}:{}", where, number);
    const Json object = Json::Parse(line);
    if (!object.is_object()) {
      return Invalid("{}: not a JSON object on one line", place);
    }
    FT_ASSIGN_OR_RETURN(RolloutPrompt prompt, ParseLine(line, object, place, encoding));
    FT_ASSIGN_OR_RETURN(prompt.id, IdOf(object, before + prompts.size() + 1, place));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<RolloutPrompt>> ReadRolloutPrompts(const PromptOptions& options,
                                                      const PromptEncoding& encoding, int context) {
  std::vector<RolloutPrompt> prompts;
  for (const std::string& path : options.files) {
    FT_RETURN_IF_ERROR(AddFile(path, options, encoding, &prompts));
  }
  if (options.files.empty()) {
    for (const PromptSet& set : BuiltInSets()) {
      FT_RETURN_IF_ERROR(AddTexts(set, options, encoding, &prompts));
    }
  }
  FT_RETURN_IF_ERROR(CheckIds(prompts));
  for (const RolloutPrompt& prompt : prompts) {
    if (std::ssize(prompt.tokens) < context) continue;
    return Invalid(
        "the prompt {} has {} tokens, but the context holds {} with at least one of output: "
        "shorten or drop it",
        prompt.id.dump(), prompt.tokens.size(), context);
  }
  return prompts;
}

std::string FingerprintOf(const std::vector<RolloutPrompt>& prompts) {
  Sha256 sha;
  for (const RolloutPrompt& prompt : prompts) {
    sha.Update(Json::array({prompt.id, prompt.tokens, prompt.continues_text}).dump() + "\n");
  }
  return sha.Hex();
}

std::uint64_t SampleSeed(std::uint64_t seed, const Json& prompt_id, int sample) {
  constexpr int kDigits = 13;  // Digits of four bits each.
  const std::string hex = Sha256Hex(fmt::format("{} {} {}", seed, sample, prompt_id.dump()));
  return std::stoull(hex.substr(0, kDigits), nullptr, 16);
}

}  // namespace foretoken
