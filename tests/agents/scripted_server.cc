// scripted_server ARGUMENTS: `foretoken serve ARGUMENTS` with models that say what the caller
// wants.
//
// A line {"prompt": TEXT} on standard output asks what is said behind a prompt, and the next line
// of standard input tells: {"say": TEXT}, or {"say": null} for what the model would say itself.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/serve/serve_command.h"
#include "door/api/study.h"
#include "json/json.h"

namespace foretoken {
namespace {

// What asks the caller, one question at a time.
class Caller {
 public:
  std::optional<std::string> Say(const Tokenizer& tokenizer, std::span<const Token> prompt) {
    IncrementalDecoder decoder(&tokenizer);
    std::string text;
    for (const Token token : prompt) {
      // Marks of the template are special tokens, which stand for no text.
      text += tokenizer.IsSpecial(token) ? std::string(tokenizer.TokenName(token))
                                         : decoder.Push(token);
    }
    text += decoder.Finish();
    const std::lock_guard lock(mutex_);
    fmt::print("{}\n", Json{{"prompt", text}}.dump());
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    const auto said = Json::Parse(line).at("say");
    if (said.is_null()) return std::nullopt;
    return said.get<std::string>();
  }

 private:
  std::mutex mutex_;
};

int Run(int argc, char** argv) {
  Caller caller;
  CLI::App app;
  CommandBody chosen;
  AddServeCommand(&app, &chosen,
                  [&caller](std::shared_ptr<LanguageModel> model, const EngineOptions& options) {
                    const Tokenizer* tokenizer = model->tokenizer();
                    const AnswerText answer = [&caller, tokenizer](std::span<const Token> prompt) {
                      return caller.Say(*tokenizer, prompt);
                    };
                    return OpenForStudy(std::move(model), options, {.answer = answer});
                  });
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  const Result<int> result = chosen();
  if (result.ok()) return *result;
  PrintError(result.error().message);
  return kBadInput;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) { return foretoken::Run(argc, argv); }
