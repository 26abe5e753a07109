#include <fmt/core.h>

#include <memory>

#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/bench/bench.h"
#include "apps/lab/bench/bench_report.h"
#include "apps/lab/common/study_commands.h"
#include "json/json.h"

namespace foretoken {
namespace {

void AddBenchPromptOptions(CLI::App* command, BenchOptions* options) {
  const OptionGroup add(command, "Prompts");
  AddPromptOptions(command, &options->prompts);
  add("--chat", &options->prompts.chat,
      "Use the chat template for plain text too (JSON lines use it where there is one)")
      ->excludes("--raw");
  add("--prompt-tokens", &options->prompt_tokens, "N",
      "Length of the random prompts of a synthetic target (default 256)")
      ->check(Between(1, 1 << 24));
}

}  // namespace

void AddBenchCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "bench");
  const OptionGroup add(command);
  const OptionGroup speculation(command, "Speculation");
  const OptionGroup output(command, "Output");
  auto options = std::make_shared<BenchOptions>();
  options->generation.stop.max_tokens = 128;
  options->speculation.prefix_cache = false;
  add("--modes", &options->modes, "LIST",
      "Modes to compare, the first 'ar' being the measure of the others (default ar,sd,ssd); all: "
      "every mode that there is everything for");
  add("--compare-fallbacks", &options->fallbacks, "LIST",
      "Run mode ssd once with each of these values of --fallback; of them only retrieval is given "
      "the datastore");
  add("--drafters", &options->drafters, "LIST",
      "Run every mode with a draft once with each of these, and rank them: what --draft takes, or "
      "NAME=that; ngram and other modes whose drafter is no model may be among them");
  add("--only-target-cores", &options->only_target_cores,
      "Leave out ar@all and sd@all, which run on the draft's cores too");
  add("-b,--batch,--parallel", &options->batch, "N", "Requests in flight (also -np)")
      ->check(Between(1, 256));
  AddBenchPromptOptions(command, options.get());
  AddModelOptions(command, &options->model, kMostDrafts);
  AddAdapterOptions(command, &options->adapters, "prompts take turns with each that is given");
  AddSyntheticOptions(command, &options->model);
  AddSpeculationOptions(command, &options->speculation);
  for (const char* other : {"--fallback", "--ssd-preset"}) {
    FindOption(command, "--compare-fallbacks")->excludes(FindOption(command, other));
  }
  for (const char* other : {"--draft", "--hf-repo-draft", "--draft-synthetic"}) {
    FindOption(command, "--drafters")->excludes(FindOption(command, other));
  }
  AddDatastoreOptions(command, &options->datastore);
  AddMemoryOptions(command, &options->model, &options->speculation);
  speculation("--target-delay-us", &options->target_delay_us, "US",
              "Hit rates beside a slower target: its passes take this much longer, so that the "
              "draft prepares all that the fan-out asks for")
      ->check(Between(0, 1'000'000));
  speculation("--scripted-acceptance", &options->script, "A[,H]",
              "Timing studies: a token is accepted with probability A and its bonus found with "
              "probability H (default 0.9); the output is then not the model's");
  speculation("--scripted-answers", &options->scripted_answers,
              "Timing studies: the target says the 'answer' of each line of --prompts, whatever "
              "its weights say, as far as a grammar allows")
      ->excludes("--scripted-acceptance", "--lossy");
  AddSamplingOptions(command, &options->generation);
  AddConstraintOptions(command, &options->constraint);
  AddStopOptions(command, &options->generation);
  AddCoreOptions(command, &options->cores);
  AddNeighbourOptions(command, &options->neighbour);
  AddServerBenchOptions(command, &options->server);
  output("--json", &options->files.json, "FILE", "Write the report as JSON; - for the output");
  output("--html", &options->files.html, "FILE", "Write the report as a page with plots");
  std::string footer =
      "The prefix cache is off unless --prefix-cache is given. --help-all ends with what the "
      "figures mean.";
  const Json definitions = Definitions();
  for (const auto& [name, meaning] : definitions.items()) {
    footer += fmt::format("\n  {}: {}", name, meaning.get<std::string>());
  }
  SetFooter(command, footer);
  WhenChosen(command, chosen, [options, command]() -> Result<int> {
    if (options->server.url.empty()) return RunBench(*options);
    FT_RETURN_IF_ERROR(CheckServerBenchOptions(*command));
    options->server.modes = options->modes;
    options->server.neighbour = options->neighbour;
    return RunServerBench(options->server, options->prompts, options->generation, options->files);
  });
}

}  // namespace foretoken
