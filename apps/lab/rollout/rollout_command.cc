#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "apps/lab/rollout/rollout_jobs.h"
#include "apps/lab/rollout/rollout_report.h"
#include "apps/lab/rollout/rollout_session.h"
#include "json/json.h"

namespace foretoken {
namespace {

Result<int> TakeSamples(const RolloutOptions& options) {
  if (options.speculation.is_lossy()) {
    return InvalidInput("samples are to be the model's own: --lossy is not for rollout");
  }
  if (options.serve_jobs) return ServeRolloutJobs(options);
  if (options.json && options.out.empty()) {
    return InvalidInput("--json prints the report where the samples go: give a file for them, -o");
  }
  RolloutSession session(options);
  CatchInterrupts();
  FT_ASSIGN_OR_RETURN(const RolloutDone done,
                      session.Take({.prompts = options.prompts,
                                    .samples = options.samples,
                                    .seed = options.generation.sampling.seed,
                                    .out = options.out,
                                    .target = {}}));
  if (options.json) {
    fmt::print("{}\n", RolloutReportJson(done).dump(2));
  } else {
    fmt::print(options.out.empty() ? stderr : stdout, "{}", RenderRolloutReport(done));
  }
  return done.report.left > 0 ? kCheckFailed : kSucceeded;
}

// -n is how many samples here, as those who train ask for them, and not how many tokens.
void AddRolloutStopOptions(CLI::App* command, GenerationOptions* options) {
  const OptionGroup add(command, "Stopping");
  add("--max-tokens,--predict,--n-predict", &options->stop.max_tokens, "N",
      fmt::format("Tokens of a sample at most (default {})", options->stop.max_tokens))
      ->check(Between(1, 1 << 24));
  add("--stop", &options->stop.stop_strings, "TEXT",
      "End a sample before this text appears; may be repeated")
      ->allow_extra_args(false);
  add("--ignore-eos", &options->stop.ignore_eos,
      "Continue after the model's end-of-sequence token");
}

void AddRolloutOutputOptions(CLI::App* command, RolloutOptions* options) {
  const OptionGroup add(command);
  const AddedOption out =
      add("-o,--out", &options->out, "FILE",
          "Where samples go as they finish, JSON lines; one that is there already and was begun in "
          "the same way is gone on with (default: standard output)");
  add("-n,--samples", &options->samples, "N", "Samples of each prompt, of different seeds")
      ->check(Between(1, kMaxSamples));
  add("-b,--batch,--parallel", &options->batch, "N",
      "Samples decoded together (also -np; default 32)")
      ->check(Between(1, 256));
  const AddedOption as_json =
      add("--json", &options->json, "Print the report as one JSON object instead of text");
  add("--serve-jobs", &options->serve_jobs,
      "Read jobs from standard input, a JSON object on each line: prompts and out (files), and if "
      "they are to change samples, seed and target, whose weights are then loaded; each is "
      "answered by its report on a line")
      ->excludes(out)
      ->excludes(as_json);
}

}  // namespace

void AddRolloutCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "rollout");
  auto options = std::make_shared<RolloutOptions>();
  options->generation.sampling.temperature = 1;
  AddRolloutOutputOptions(command, options.get());
  AddPromptOptions(command, &options->prompts);
  FindOption(command, "--serve-jobs")->excludes("--prompts");
  AddModelOptions(command, &options->model, kMostDrafts);
  AddAdapterOptions(command, &options->adapters, "the samples are decoded with it");
  AddModeOption(command, &options->mode);
  OptionGroup(command, "Speculation")(
      "--tail-mode", &options->tail_mode, "MODE",
      "How the last samples are decoded, when none is left to begin and the target's passes have "
      "rows to spare (default: as --mode says)");
  AddSpeculationOptions(command, &options->speculation);
  AddDatastoreOptions(command, &options->datastore);
  AddMemoryOptions(command, &options->model, &options->speculation);
  AddSamplingOptions(command, &options->generation);
  AddConstraintOptions(command, &options->constraint);
  AddChatTemplateOptions(command, &options->chat_template);
  AddRolloutStopOptions(command, &options->generation);
  AddCoreOptions(command, &options->cores);
  SetFooter(command,
            "Samples are drawn at temperature 1 unless --temp says otherwise. Each has a seed of "
            "its own, which follows from --seed, the prompt's id and the sample's number, and is "
            "the same in every mode, bit for bit. docs/do/rollout.md defines the files.");
  WhenChosen(command, chosen, [options] { return TakeSamples(*options); });
}

}  // namespace foretoken
