// Text to the ids of tokens and back, as the models see it.

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "base/files/read_text.h"
#include "base/text/parse_number.h"
#include "foretoken/tokenizer.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  ChatTemplateOptions chat_template;
  std::optional<std::string> text;  // For detokenize: ids. "-" or none: standard input.
  std::string file;
  bool chat = false;
  bool no_bos = false;
  bool literal = false;
  bool pieces = false;
  bool json = false;
};

Result<std::string> ReadGivenText(const TokenizeOptions& options) {
  if (options.text && options.text != "-") return *options.text;
  const std::string path = options.file.empty() ? "/dev/stdin" : options.file;
  Result<std::string> text = ReadText(path);
  if (!text.ok()) {
    return Invalid("cannot read '{}': {}", path, text.error().message);
  }
  return text;
}

Result<std::unique_ptr<Tokenizer>> LoadModelTokenizer(ModelOptions model) {
  FT_RETURN_IF_ERROR(model.ResolveDefaults());
  return Tokenizer::Load(model.target);
}

Result<int> Tokenize(const TokenizeOptions& options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadModelTokenizer(options.model));
  FT_ASSIGN_OR_RETURN(const std::string text, ReadGivenText(options));
  std::vector<Token> tokens;
  if (options.chat) {
    FT_ASSIGN_OR_RETURN(const std::string jinja, options.chat_template.Read());
    if (!jinja.empty()) FT_RETURN_IF_ERROR(tokenizer->UseChatTemplate(jinja));
    FT_ASSIGN_OR_RETURN(tokens,
                        EncodeQuestion(*tokenizer, text, {}, options.chat_template.variables));
  } else {
    tokens = tokenizer->Encode(text, !options.no_bos, !options.literal);
  }
  if (options.json) {
    fmt::print("{}\n", Json(tokens).dump());
    return kSucceeded;
  }
  for (const Token token : tokens) {
    fmt::print("{}", token);
    if (options.pieces) fmt::print("\t{}", tokenizer->TokenName(token));
    fmt::print("\n");
  }
  return kSucceeded;
}

// Ids with spaces, commas, line ends or brackets around them, as either form of `tokenize` prints
// them.
Result<std::vector<Token>> ParseIds(std::string_view text, const Tokenizer& tokenizer) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<Token> tokens;
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view item = text.substr(at, end - at);
    Token token = -1;
    if (!ParseNumber(item, &token) || token < 0 || token >= tokenizer.vocabulary()) {
      return Invalid("'{}' is no token of this vocabulary: ids are from 0 to {}", item,
                     tokenizer.vocabulary() - 1);
    }
    tokens.push_back(token);
    at = end;
  }
  return tokens;
}

Result<int> Detokenize(const TokenizeOptions& options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadModelTokenizer(options.model));
  FT_ASSIGN_OR_RETURN(const std::string input, ReadGivenText(options));
  FT_ASSIGN_OR_RETURN(const std::vector<Token> tokens, ParseIds(input, *tokenizer));
  IncrementalDecoder decoder(tokenizer.get());
  std::string text;
  for (const Token token : tokens) text += decoder.Push(token);
  text += decoder.Finish();
  fmt::print("{}", text);
  return kSucceeded;
}

// The model and where the input comes from.
void AddInputOptions(CLI::App* command, const char* what, TokenizeOptions* options) {
  const OptionGroup add(command);
  const AddedOption text = add(what, &options->text, "TEXT", "- or nothing: standard input");
  add("-f,--file", &options->file, "FILE", "Read from a file")->excludes(text);
  AddTargetOptions(
      add, "-m,--target,--model", &options->model,
      "The model, a folder or a GGUF file, whose tokenizer is used; the bundled one by default");
}

}  // namespace

void AddTokenizeCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      AddCommand(app, "tokenize", "Print the token ids of a text, as a model reads it");
  auto options = std::make_shared<TokenizeOptions>();
  AddInputOptions(command, "text", options.get());
  const OptionGroup add(command);
  const AddedOption chat =
      add("--chat", &options->chat, "As a user's turn in the model's chat template");
  AddChatTemplateOptions(command, &options->chat_template);
  FindOption(command, "--chat-template")->needs(chat);
  FindOption(command, "--chat-template-kwargs")->needs(chat);
  add("--no-bos", &options->no_bos, "Without the token that begins a text")->excludes(chat);
  add("--literal", &options->literal, "Names of special tokens are text like any other")
      ->excludes(chat);
  const AddedOption as_json = add("--json", &options->json, "Print a JSON array instead of lines");
  add("--pieces", &options->pieces, "Print beside each id how the vocabulary spells it")
      ->excludes(as_json);
  WhenChosen(command, chosen, [options] { return Tokenize(*options); });
}

void AddDetokenizeCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "detokenize", "Print the text of token ids");
  auto options = std::make_shared<TokenizeOptions>();
  AddInputOptions(command, "ids", options.get());
  SetFooter(command,
            "Ids are separated by spaces, commas or line ends, with or without brackets: what "
            "`foretoken tokenize` prints, with --json or without.");
  WhenChosen(command, chosen, [options] { return Detokenize(*options); });
}

}  // namespace foretoken
