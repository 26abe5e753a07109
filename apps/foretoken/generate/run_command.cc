#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/generation.h"
#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/shown_text.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/model_sampling.h"
#include "apps/foretoken/options/options.h"
#include "base/files/read_text.h"
#include "base/files/replace_file.h"
#include "base/numbers/integers.h"
#include "foretoken/receipt.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct RunOptions : DecodingOptions {
  std::optional<std::string> argument;  // The prompt; "-" is standard input.
  std::optional<std::string> prompt;    // The same, given as an option.
  std::string file;
  std::string system;
  bool chat = false;
  bool json = false;
  std::string receipt;
  ModelSamplingOptions model_sampling;
  std::string color = "auto";
};

Result<std::string> ReadPrompt(const RunOptions& options) {
  const bool asks_for_stdin = options.argument == "-";
  std::string text;
  if (options.argument && !asks_for_stdin) {
    text = *options.argument;
  } else if (options.prompt) {
    text = *options.prompt;
  } else {
    if (options.file.empty() && !asks_for_stdin && IsTerminal(stdin)) {
      return InvalidInput(
          "there is no prompt; give it as an argument, or - to type it, ending with Ctrl-D");
    }
    const std::string path = options.file.empty() ? "/dev/stdin" : options.file;
    Result<std::string> read = ReadText(path);
    if (!read.ok()) {
      return Invalid("cannot read the prompt from '{}': {}", path, read.error().message);
    }
    text = std::move(*read);
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();  // A line as other systems end it.
  }
  if (text.empty()) return InvalidInput("the prompt is empty");
  return text;
}

// "ssd 40, sd 3": rounds of each mode that auto chose.
std::string ChosenModes(const ByMode<int>& rounds) {
  std::string text;
  for (const Mode mode : kModes) {
    if (rounds[mode] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", ModeName(mode), rounds[mode]);
  }
  return text;
}

std::string StatisticsLine(Mode mode, const Generation& generation, const ByMode<int>& rounds) {
  const RequestStats& stats = generation.stats;
  std::string line =
      fmt::format("{}: {}, first token after {}", ModeName(mode), SpeedText(stats),
                  FormatDuration(static_cast<double>(stats.first_token_ns - stats.submitted_ns)));
  line += SpeculationText(mode, stats);
  const std::string chosen = mode == Mode::kAuto ? ChosenModes(rounds) : "";
  if (!chosen.empty()) line += fmt::format(" (rounds: {})", chosen);
  return line + fmt::format(", {}", DescribeFinish(generation.finish));
}

Json GenerationJson(const RunOptions& options, Mode mode, const Generation& generation,
                    const ByMode<int>& rounds, const std::optional<PlannerReport>& planner) {
  Json logprobs = Json::array();
  for (const auto& entry : generation.logprobs) {
    Json top = Json::array();
    for (std::size_t i = 1; i < entry.size(); ++i) {
      top.push_back({{"token", entry[i].token}, {"logprob", entry[i].logprob}});
    }
    logprobs.push_back(
        {{"token", entry[0].token}, {"logprob", entry[0].logprob}, {"top", std::move(top)}});
  }
  Json run = {
      {"model", options.model.TargetSource().label()},
      {"mode", ModeName(mode)},
      {"seed", options.generation.sampling.seed},
      {"text", generation.text},
      {"tokens", generation.tokens},
      {"finish_reason", FinishReasonName(generation.finish)},
      {"stats", StatsJson(generation.stats)},
  };
  if (mode != Mode::kAr && options.model.has_draft()) run["draft"] = options.model.DraftLabel();
  if (planner) run["planner"] = PlannerJson(*planner);
  if (mode == Mode::kAuto) {
    Json& chosen = run["rounds_by_mode"] = Json::object();
    for (const Mode any : kModes) {
      if (rounds[any] > 0) chosen[std::string(ModeName(any))] = rounds[any];
    }
  }
  if (!logprobs.empty()) run["logprobs"] = std::move(logprobs);
  return run;
}

Result<int> RunOnce(RunOptions options) {
  FT_ASSIGN_OR_RETURN(const Mode mode, options.Choose());
  FT_RETURN_IF_ERROR(options.CheckFor({&mode, 1}));
  if (!options.receipt.empty() && options.speculation.is_lossy()) {
    return InvalidInput(
        "a receipt says that the model wrote the text, which --lossy gives up: leave one out");
  }
  FT_ASSIGN_OR_RETURN(const std::string prompt, ReadPrompt(options));
  FT_RETURN_IF_ERROR(options.model_sampling.AddTo(options.model.TargetSource().path,
                                                  &options.generation.sampling));
  FT_ASSIGN_OR_RETURN(const Decoding decoding, options.Load(mode));
  const LanguageModel& target = *decoding.target;
  Request request;
  if (options.chat) {
    FT_ASSIGN_OR_RETURN(request.prompt, EncodeQuestion(*target.tokenizer(), prompt, options.system,
                                                       options.chat_template.variables));
  } else {
    FT_ASSIGN_OR_RETURN(request.prompt, EncodePrompt(*target.tokenizer(), prompt, false));
  }
  request.sampling = options.generation.sampling;
  FT_RETURN_IF_ERROR(
      KeepToBudget(options.budget, options.constraint, target, request.prompt, &request.sampling));
  request.stop = options.generation.stop;
  request.continues_text = !options.chat;
  request.datastore = decoding.datastore.tenant;
  FT_ASSIGN_OR_RETURN(request.adapter, TheAdapter(target));
  FT_ASSIGN_OR_RETURN(const int context,
                      ChooseContext(options.model, target,
                                    Int(request.prompt.size()) + request.stop.max_tokens +
                                        options.speculation.MostLookahead()));
  FT_RETURN_IF_ERROR(CheckPromptFits(request.prompt.size(), context));
  FT_ASSIGN_OR_RETURN(const auto engine, options.OpenEngine(mode, decoding, context));

  const bool color = UseColor(options.color, stdout);
  const Painter painter(color && mode != Mode::kAr);
  ByMode<int> rounds{};
  GenerateHooks hooks;
  hooks.on_round = [&rounds](SequenceId, const RoundRecord& round) {
    if (round.round > 1) ++rounds[round.mode];  // In the first, the prompt's, nothing is proposed.
  };
  if (!options.json) {
    fmt::print(stderr, "{}", painter.Legend());
    if (!options.chat && IsTerminal(stdout))
      fmt::print("{}", Painter(color).Dim(ShownText(prompt, stdout)));
    hooks.on_token = [&painter](SequenceId, const EmittedToken& token) {
      if (token.text.empty()) return;
      fmt::print("{}", painter.Paint(token.origin, ShownText(token.text, stdout)));
      std::fflush(stdout);
    };
  }
  const Request asked = request;
  FT_ASSIGN_OR_RETURN(const Generation generation, Generate(*engine, std::move(request), hooks));
  if (const Status finite = CheckFiniteLogits({&generation, 1}, target.source().label());
      !finite.ok()) {
    if (!options.json && !generation.text.empty()) fmt::print("\n");
    return finite.error();
  }
  if (!options.receipt.empty()) {
    const Receipt receipt = MakeReceipt(target, asked, generation.tokens, generation.finish);
    FT_RETURN_IF_ERROR(ReplaceFile(options.receipt, FormatReceipt(receipt)));
  }
  FT_RETURN_IF_ERROR(decoding.datastore.Flush());
  if (options.json) {
    fmt::print("{}\n",
               GenerationJson(options, mode, generation, rounds, engine->planner_report()).dump(2));
  } else {
    fmt::print("\n");
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", StatisticsLine(mode, generation, rounds));
  }
  const std::string verdict = DraftVerdict(mode, CostsOf(generation.stats, engine->stats()));
  if (!verdict.empty()) PrintWarning(verdict);
  return 0;
}

}  // namespace

void AddRunCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "run", "Continue a prompt, or answer it with --chat");
  const OptionGroup add(command);
  const OptionGroup prompt(command, "Prompt");
  const OptionGroup output(command, "Output");
  auto options = std::make_shared<RunOptions>();
  const AddedOption argument = add("text", &options->argument, "TEXT",
                                   "The prompt; - or nothing: what comes on standard input");
  const AddedOption text =
      prompt("-p,--prompt", &options->prompt, "TEXT", "The prompt, as an option")
          ->excludes(argument);
  prompt("-f,--file", &options->file, "FILE", "Read the prompt from a file")
      ->excludes(argument)
      ->excludes(text);
  const AddedOption chat = prompt("--chat", &options->chat,
                                  "Ask the prompt as a question, in the model's chat template");
  prompt("--system", &options->system, "TEXT", "What the model is told first, with --chat")
      ->needs(chat);
  AddChatTemplateOptions(command, &options->chat_template);
  FindOption(command, "--chat-template")->needs(chat);
  FindOption(command, "--chat-template-kwargs")->needs(chat);
  AddReasoningOptions(command, &options->budget);
  FindOption(command, "--reasoning-budget")->needs(chat);
  AddDecodingOptions(command, options.get());
  AddModelSamplingOption(command, &options->model_sampling);
  const AddedOption as_json =
      output("--json", &options->json, "Print one JSON object at the end instead of text");
  output(
      "--receipt", &options->receipt, "FILE",
      "Write a receipt, by which `foretoken check` tells on any machine that the model wrote this");
  output("--logprobs", &options->generation.sampling.top_logprobs, "N",
         "With --json: log-probability of each token and of the N most likely")
      ->check(Between(0, 100))
      ->needs(as_json);
  AddColorOption(command, &options->color);
  WhenChosen(command, chosen, [options, command] {
    NoteGiven(command, &options->model_sampling);
    return RunOnce(*options);
  });
}

}  // namespace foretoken
