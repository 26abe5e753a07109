#include "apps/foretoken/common/prompts.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/files/read_text.h"
#include "base/numbers/philox.h"
#include "base/text/text.h"
#include "json/json.h"

namespace foretoken {
namespace {

// The first text among the object's members of these names, or in the list that one is.
const Json* FirstText(const Json& object, std::initializer_list<const char*> keys) {
  if (!object.is_object()) return nullptr;
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    const Json* value = &*found;
    if (value->is_array() && !value->empty()) value = &value->front();
    if (value->is_string()) return value;
  }
  return nullptr;
}

std::string_view FirstWords(std::string_view text, int words) {
  std::size_t at = 0;
  for (int i = 0; i < words; ++i) {
    const std::size_t begin = text.find_first_not_of(kSpaces, at);
    if (begin == std::string_view::npos) return text;
    at = std::min(text.find_first_of(kSpaces, begin), text.size());
  }
  return text.substr(0, at);
}

}  // namespace

Result<PromptSet> ParseJsonPrompts(std::string_view content, std::string_view where) {
  PromptSet set;
  std::istringstream lines{std::string(content)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (Trim(line).empty()) continue;
    const Json object = Json::Parse(line);
    if (object.is_discarded()) {
      return Invalid("{}:{}: not a JSON object on one line", where, number);
    }
    const Json* prompt = FirstText(object, {"prompt", "turns", "question"});
    if (prompt == nullptr) {
      return Invalid("{}:{}: no text in 'prompt', 'turns[0]' or 'question'", where, number);
    }
    const Json* answer = FirstText(object, {"answer", "reference"});
    set.prompts.push_back(prompt->get<std::string>());
    set.answers.push_back(answer == nullptr ? "" : answer->get<std::string>());
  }
  return set;
}

std::vector<std::string> ParseTextPrompts(std::string_view content, std::optional<int> words) {
  std::vector<std::string> prompts;
  std::string paragraph;
  std::istringstream lines{std::string(content) + "\n\n"};  // So that the last paragraph ends too.
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!Trim(line).empty()) {
      paragraph.append(line).append("\n");
      continue;
    }
    const std::string_view text = Trim(paragraph);
    if (!text.empty()) prompts.emplace_back(words ? FirstWords(text, *words) : text);
    paragraph.clear();
  }
  return prompts;
}

Result<PromptSet> ReadPromptFile(const std::string& path, std::optional<int> words) {
  const Result<std::string> content = ReadText(path);
  if (!content.ok()) {
    return Invalid("cannot read the prompt file '{}': {}", path, content.error().message);
  }
  PromptSet set;
  if (Trim(*content).starts_with('{')) {
    FT_ASSIGN_OR_RETURN(set, ParseJsonPrompts(*content, path));
  } else {
    set.prompts = ParseTextPrompts(*content, words);
    set.plain_text = true;
  }
  set.name = std::filesystem::path(path).filename().string();
  if (set.prompts.empty()) {
    return Invalid("the prompt file '{}' holds no prompt", path);
  }
  return set;
}

Result<std::vector<Token>> EncodePrompt(const Tokenizer& tokenizer, std::string_view text,
                                        bool chat) {
  if (chat) return EncodeQuestion(tokenizer, text, {}, {});
  std::vector<Token> tokens = tokenizer.Encode(text, /*add_bos=*/true, /*parse_special=*/true);
  if (tokens.empty()) return InvalidInput("the prompt is empty and the model has no start token");
  return tokens;
}

Result<std::vector<Token>> EncodeQuestion(const Tokenizer& tokenizer, std::string_view text,
                                          std::string_view system, std::string_view variables) {
  ChatInput chat{.variables = std::string(variables), .now = LocalTime()};
  if (!system.empty()) chat.messages.push_back({"system", std::string(system)});
  chat.messages.push_back({"user", std::string(text)});
  FT_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenizer.EncodeChat(chat));
  if (tokens.empty()) return InvalidInput("the chat template writes nothing for this prompt");
  return tokens;
}

Result<EncodedSet> EncodeSet(const Tokenizer& tokenizer, const PromptSet& set,
                             const PromptOptions& options, int context, int max_tokens) {
  EncodedSet encoded;
  encoded.name = set.name;
  encoded.chat = options.chat || (tokenizer.has_chat_template() && options.AsChat(set));
  for (std::size_t i = 0; i < set.prompts.size(); ++i) {
    if (options.limit && std::ssize(encoded.prompts) == *options.limit) break;
    FT_ASSIGN_OR_RETURN(std::vector<Token> tokens,
                        EncodePrompt(tokenizer, set.prompts[i], encoded.chat));
    if (std::ssize(tokens) + max_tokens > context) {
      ++encoded.too_long;
    } else {
      encoded.prompts.push_back(std::move(tokens));
      encoded.answers.push_back(i < set.answers.size() ? set.answers[i] : std::string());
    }
  }
  if (encoded.prompts.empty()) {
    return Invalid(
        "no prompt of '{}' fits a context of {} tokens with {} tokens of output; lower "
        "--max-tokens or give shorter prompts",
        set.name, context, max_tokens);
  }
  return encoded;
}

EncodedSet RandomSet(int vocabulary, int length, int count, std::uint64_t seed) {
  EncodedSet set;
  set.name = "random tokens";
  for (int i = 0; i < count; ++i) {
    std::vector<Token> tokens(length);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const double u =
          UnitInterval(PhiloxDraw(seed, t, static_cast<std::uint32_t>(i), NoisePurpose::kScript));
      tokens[t] = std::min(static_cast<Token>(u * vocabulary), vocabulary - 1);
    }
    set.prompts.push_back(std::move(tokens));
  }
  return set;
}

std::vector<PromptSet> BuiltInSets() {
  return {
      {"chat turns",
       {"Tell me a story about a dragon.", "Tell me a story about a boy who finds a key.",
        "Tell me a story about a cat and a dog.", "Tell me a story about a rainy day.",
        "Tell me a story about a girl who loves the sea.", "Tell me a story about a big red truck.",
        "Tell me a story about two friends in the park.", "Tell me a story about a lost toy."},
       false},
      {"story openings",
       {"Once upon a time, there was a little girl named Lily. She had a red ball",
        "One day, a small bird wanted to fly over the big hill. Her mom said",
        "Tom and his sister went to the park. They saw a",
        "Once upon a time, a frog lived in a pond", "There was a boy named Tim. He liked to eat",
        "The old bear was very sad because", "Sara found a shiny stone near the river. She",
        "One night, the moon was big and bright"},
       true},
  };
}

Result<std::vector<PromptSet>> ReadPromptSets(const PromptOptions& options) {
  if (options.files.empty()) return BuiltInSets();
  std::vector<PromptSet> sets;
  for (const std::string& path : options.files) {
    FT_ASSIGN_OR_RETURN(sets.emplace_back(), ReadPromptFile(path, options.words));
  }
  return sets;
}

Result<std::vector<EncodedSet>> EncodeSets(const PromptOptions& options, const Tokenizer& tokenizer,
                                           int context, int max_tokens) {
  FT_ASSIGN_OR_RETURN(const std::vector<PromptSet> sets, ReadPromptSets(options));
  std::vector<EncodedSet> encoded;
  for (const PromptSet& set : sets) {
    FT_ASSIGN_OR_RETURN(encoded.emplace_back(),
                        EncodeSet(tokenizer, set, options, context, max_tokens));
  }
  return encoded;
}

}  // namespace foretoken
