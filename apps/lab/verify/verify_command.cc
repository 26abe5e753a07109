#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <random>

#include "apps/foretoken/common/generation.h"
#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "apps/lab/verify/verify_plan.h"
#include "apps/lab/verify/verify_report.h"
#include "base/numbers/integers.h"
#include "door/api/study.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct VerifyOptions : DecodingOptions {
  std::string modes = "ar,sd,ssd";
  std::string temps = "0,0.7,1.0";
  std::string batches = "1,4,16";
  std::string prefix_caches = "on";
  std::vector<std::string> sampler_sets;
  PromptOptions prompts;
  double preempt = 0;
  std::int64_t speculator_delay_us = 0;
  bool kill_speculator = false;
  std::size_t show = 5;
  ReportFiles files;
};

using Outputs = std::vector<std::vector<Token>>;

class Verify {
 public:
  explicit Verify(VerifyOptions options) : options_(std::move(options)), random_(1) {}
  Result<int> Run();

 private:
  Status ReadOptions();
  Status ReadPrompts();
  Result<std::unique_ptr<Engine>> NewEngine(const VerifyConfiguration& configuration);
  std::vector<Request> Requests(const VerifySetting& setting, std::size_t begin,
                                std::size_t end) const;
  AdapterUse AdapterOf(std::size_t prompt) const;
  Status RunBaseline(ProgressBar* progress);
  Status RunConfiguration(std::size_t index, ProgressBar* progress);
  Result<Outputs> RunPrompts(std::unique_ptr<Engine>* engine,
                             const VerifyConfiguration& configuration,
                             const VerifySetting& setting);
  void Disturb(Engine* engine, const VerifyConfiguration& configuration);
  void Compare(std::size_t configuration, std::size_t setting, const Outputs& outputs);
  Status Explain();

  bool kills(const VerifyConfiguration& configuration) const {
    const bool speculates = configuration.mode.during() || configuration.mode.planned();
    return options_.kill_speculator && speculates;
  }

  VerifyOptions options_;
  Decoding decoding_;
  VerifyReport report_;
  std::vector<std::vector<Token>> prompts_;
  int context_ = 0;
  std::unique_ptr<Engine> baseline_engine_;
  std::vector<Outputs> baseline_;  // Per setting.
  std::mt19937 random_;
  int steps_to_kill_ = 0;
};

Status Verify::ReadOptions() {
  FT_RETURN_IF_ERROR(options_.generation.Finish());
  FT_RETURN_IF_ERROR(options_.model.ResolveDefaults(options_.datastore.directory));
  FT_ASSIGN_OR_RETURN(const std::vector<Mode> modes, ParseModes(options_.modes));
  FT_ASSIGN_OR_RETURN(std::vector<float> temps, ParseTemperatures(options_.temps));
  FT_ASSIGN_OR_RETURN(const std::vector<int> batches, ParseBatches(options_.batches));
  FT_RETURN_IF_ERROR(options_.CheckFor(modes));
  for (const Mode mode : modes) FT_RETURN_IF_ERROR(options_.model.CheckDraftOf(mode));
  if (options_.speculation.is_lossy()) {
    return InvalidInput(
        "verify shows that every mode emits the same tokens, which --lossy gives up: leave it out");
  }
  if (options_.speculation.verification == "rejection") {
    if (std::erase_if(temps, [](float temperature) { return temperature > 0; }) > 0) {
      std::fprintf(stderr,
                   "Rejection promises equal tokens at temperature 0 only, and above it the same "
                   "distribution: temperatures above 0 are left out.\n");
    }
    if (temps.empty()) return InvalidInput("no temperature is left to compare: add 0 to --temps");
  }
  if (options_.sampler_sets.empty()) {
    options_.sampler_sets = {"none", "top-k=40+top-p=0.95+min-p=0.02",
                             "repeat-penalty=1.1+frequency-penalty=0.2+presence-penalty=0.2"};
  }
  for (const std::string& list : options_.sampler_sets) {
    for (const std::string& text : SplitList(list)) {
      FT_ASSIGN_OR_RETURN(report_.sampler_sets.emplace_back(), ParseSamplerSet(text));
    }
  }
  for (const float temperature : temps) {
    for (std::size_t set = 0; set < report_.sampler_sets.size(); ++set) {
      report_.settings.push_back({temperature, set});
    }
  }
  for (const Mode mode : modes) {
    for (const std::string& cache : SplitList(options_.prefix_caches)) {
      if (cache != "on" && cache != "off") {
        return Invalid("--prefix-cache: '{}' is neither on nor off", cache);
      }
      for (const int batch : batches)
        report_.configurations.push_back({mode, batch, cache == "on", {}});
    }
  }
  if (options_.kill_speculator) options_.speculation.draft_process = true;
  return {};
}

Status Verify::ReadPrompts() {
  FT_ASSIGN_OR_RETURN(const int context,
                      ChooseContext(options_.model, *decoding_.target, /*wanted=*/0));
  FT_ASSIGN_OR_RETURN(std::vector<EncodedSet> sets,
                      EncodeSets(options_.prompts, *decoding_.target->tokenizer(), context,
                                 options_.generation.stop.max_tokens));
  std::size_t longest = 0;
  for (EncodedSet& encoded : sets) {
    report_.too_long += encoded.too_long;
    for (std::size_t i = 0; i < encoded.prompts.size(); ++i) {
      longest = std::max(longest, encoded.prompts[i].size());
      prompts_.push_back(std::move(encoded.prompts[i]));
      report_.prompt_names.push_back(fmt::format("{} #{}", encoded.name, i + 1));
    }
  }
  report_.max_tokens = options_.generation.stop.max_tokens;
  context_ = std::min(context, Int(longest) + options_.generation.stop.max_tokens +
                                   options_.speculation.MostLookahead());
  return {};
}

Result<std::unique_ptr<Engine>> Verify::NewEngine(const VerifyConfiguration& configuration) {
  const std::vector<Mode> modes = options_.datastore.ModesFor(configuration.mode);
  FT_ASSIGN_OR_RETURN(EngineOptions wanted,
                      options_.EngineFor(modes, decoding_.cores, configuration.batch, context_));
  wanted.prefix_cache = configuration.prefix_cache;
  return OpenForStudy(decoding_.target, wanted,
                      {.speculator_delay_us = options_.speculator_delay_us});
}

// Prompts take turns with the model as it is and with each adapter.
AdapterUse Verify::AdapterOf(std::size_t prompt) const {
  const std::vector<AdapterSource>& adapters = decoding_.target->adapters();
  const std::size_t turn = prompt % (adapters.size() + 1);
  if (turn == 0) return {};
  return {Int(turn) - 1, adapters[turn - 1].scale};
}

std::vector<Request> Verify::Requests(const VerifySetting& setting, std::size_t begin,
                                      std::size_t end) const {
  std::vector<Request> requests;
  for (std::size_t i = begin; i < end; ++i) {
    Request request;
    request.prompt = prompts_[i];
    request.sampling = report_.sampler_sets[setting.sampler_set].params;
    request.sampling.temperature = setting.temperature;
    request.sampling.constraint = options_.generation.sampling.constraint;
    request.sampling.seed = options_.generation.sampling.seed + i;
    request.stop = options_.generation.stop;
    request.datastore = decoding_.datastore.tenant;
    request.adapter = AdapterOf(i);
    requests.push_back(std::move(request));
  }
  return requests;
}

Status Verify::RunBaseline(ProgressBar* progress) {
  const VerifyConfiguration plain{.mode = Mode::kAr, .batch = 1, .prefix_cache = false};
  progress->SetLabel("ar, batch 1");
  for (const VerifySetting& setting : report_.settings) {
    FT_ASSIGN_OR_RETURN(baseline_.emplace_back(), RunPrompts(&baseline_engine_, plain, setting));
    progress->Advance();
  }
  return {};
}

void Verify::Disturb(Engine* engine, const VerifyConfiguration& configuration) {
  if (engine == baseline_engine_.get()) return;
  if (options_.preempt > 0 && std::bernoulli_distribution(options_.preempt)(random_)) {
    ForcePreemption(*engine);
    ++report_.preemptions;
  }
  if (kills(configuration) && --steps_to_kill_ < 0) {
    for (const int child : ChildProcesses()) {
      kill(child, SIGKILL);
      ++report_.kills;
    }
    steps_to_kill_ = std::uniform_int_distribution<int>(5, 80)(random_);
  }
}

Result<Outputs> Verify::RunPrompts(std::unique_ptr<Engine>* engine,
                                   const VerifyConfiguration& configuration,
                                   const VerifySetting& setting) {
  // A speculator that is lost again soon is started after a pause only, so one that is killed again
  // and again needs new engines.
  const std::size_t chunk =
      kills(configuration) ? Size(std::max(8, 2 * configuration.batch)) : prompts_.size();
  Outputs outputs;
  for (std::size_t begin = 0; begin < prompts_.size(); begin += chunk) {
    if (*engine == nullptr || kills(configuration)) {
      engine->reset();
      FT_ASSIGN_OR_RETURN(*engine, NewEngine(configuration));
      steps_to_kill_ = std::uniform_int_distribution<int>(5, 80)(random_);
    }
    const GenerateHooks hooks{.before_step = [&] { Disturb(engine->get(), configuration); }};
    const std::size_t end = std::min(begin + chunk, prompts_.size());
    FT_ASSIGN_OR_RETURN(
        std::vector<Generation> generations,
        Generate(**engine, Requests(setting, begin, end), configuration.batch, hooks));
    FT_RETURN_IF_ERROR(CheckFiniteLogits(generations, decoding_.target->source().label()));
    for (Generation& generation : generations) outputs.push_back(std::move(generation.tokens));
  }
  return outputs;
}

void Verify::Compare(std::size_t configuration, std::size_t setting, const Outputs& outputs) {
  int identical = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<Token>& expected = baseline_[setting][i];
    const int position = FirstDifference(expected, outputs[i]);
    if (position < 0) {
      ++identical;
      continue;
    }
    const auto at = [position](const std::vector<Token>& tokens) {
      return position < std::ssize(tokens) ? tokens[position] : Token{-1};
    };
    report_.differences.push_back(
        {configuration, setting, i, position, at(expected), at(outputs[i])});
  }
  report_.configurations[configuration].identical.push_back(identical);
}

Status Verify::RunConfiguration(std::size_t index, ProgressBar* progress) {
  const VerifyConfiguration& configuration = report_.configurations[index];
  progress->SetLabel(configuration.label());
  std::unique_ptr<Engine> engine;
  for (std::size_t s = 0; s < report_.settings.size(); ++s) {
    FT_ASSIGN_OR_RETURN(const Outputs outputs,
                        RunPrompts(&engine, configuration, report_.settings[s]));
    Compare(index, s, outputs);
    progress->Advance();
  }
  return engine->CheckIdle();
}

// Decodes the first differing prompts once more to see how close the target's choice was.
Status Verify::Explain() {
  const std::size_t shown = std::min(report_.differences.size(), options_.show);
  for (std::size_t i = 0; i < shown; ++i) {
    VerifyDifference& difference = report_.differences[i];
    std::vector<Request> requests =
        Requests(report_.settings[difference.setting], difference.prompt, difference.prompt + 1);
    requests[0].sampling.top_logprobs = 2;
    FT_ASSIGN_OR_RETURN(const Generation generation,
                        Generate(*baseline_engine_, std::move(requests[0])));
    const std::size_t position = difference.position;
    if (position < generation.logprobs.size() && generation.logprobs[position].size() >= 3) {
      difference.top2_gap =
          generation.logprobs[position][1].logprob - generation.logprobs[position][2].logprob;
    }
  }
  return {};
}

Result<int> Verify::Run() {
  FT_RETURN_IF_ERROR(ReadOptions());
  FT_ASSIGN_OR_RETURN(decoding_, options_.Load());
  FT_RETURN_IF_ERROR(ReadPrompts());
  {
    ProgressBar progress("", static_cast<std::int64_t>((report_.configurations.size() + 1) *
                                                       report_.settings.size()));
    FT_RETURN_IF_ERROR(RunBaseline(&progress));
    for (std::size_t i = 0; i < report_.configurations.size(); ++i) {
      FT_RETURN_IF_ERROR(RunConfiguration(i, &progress));
    }
    FT_RETURN_IF_ERROR(Explain());
    FT_RETURN_IF_ERROR(decoding_.datastore.Flush());
  }
  Json report = VerifyReportJson(report_);
  report.update({{"target", decoding_.target->source().label()},
                 {"draft", options_.model.DraftLabel()},
                 {"backend", decoding_.target->facts().backend},
                 {"precision", options_.model.precision},
                 {"kv", options_.model.kv}});
  FT_RETURN_IF_ERROR(
      WriteReport(options_.files, report,
                  RenderVerifyReport(report_, *decoding_.target->tokenizer(), options_.show)));
  std::fflush(stdout);
  if (report_.differences.empty()) return 0;
  PrintError(fmt::format("{} of {} outputs differ from ar", report_.differences.size(),
                         report_.outputs()));
  return 1;
}

void AddWhatToVerify(CLI::App* command, VerifyOptions* options) {
  const OptionGroup add(command);
  add("--modes", &options->modes, "LIST", "Modes to check (default ar,sd,ssd)");
  add("--temps,--temp,--temperature", &options->temps, "LIST",
      "Temperatures to check at (default 0,0.7,1.0)");
  add("--batches,--batch", &options->batches, "LIST", "Requests in flight (default 1,4,16)");
  add("--prefix-cache", &options->prefix_caches, "LIST",
      "on, off, or on,off to check both (default on)");
  add("--sampler-sets", &options->sampler_sets, "LIST",
      "Sets of sampler options, each 'none' or like top-k=40+top-p=0.9; a list with commas. By "
      "default none, a set of filters and a set of penalties");
  AddPromptOptions(command, &options->prompts);
}

}  // namespace

void AddVerifyCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "verify");
  const OptionGroup disturbances(command, "Disturbances");
  const OptionGroup sampling(command, "Sampling");
  const OptionGroup output(command, "Output");
  auto options = std::make_shared<VerifyOptions>();
  options->generation.stop.max_tokens = 128;
  AddWhatToVerify(command, options.get());
  disturbances("--preempt", &options->preempt, "P",
               "Preempt a sequence by force before a step with this probability")
      ->check(Between(0.0, 0.5));
  disturbances("--speculator-delay-us", &options->speculator_delay_us, "US",
               "The speculator sleeps up to this many microseconds between its steps")
      ->check(Between(0, 10'000'000));
  disturbances("--kill-speculator", &options->kill_speculator,
               "Kill the speculator's process at random moments (implies --draft-process)");
  AddModelOptions(command, &options->model, kMostDrafts);
  AddAdapterOptions(command, &options->adapters,
                    "prompts take turns with the model as it is and with each that is given");
  AddSpeculationOptions(command, &options->speculation);
  AddDatastoreOptions(command, &options->datastore);
  AddContextOption(command, &options->model);
  AddDraftWindowOption(command, &options->model);
  AddConstraintOptions(command, &options->constraint);
  AddStopOptions(command, &options->generation);
  sampling("-s,--seed", &options->generation.sampling.seed, "N", "Seed of the first prompt");
  AddCoreOptions(command, &options->cores);
  output("--show", &options->show, "N", "Differences to show in detail (default 5)")
      ->check(Between(0, 10'000));
  output("--json", &options->files.json, "FILE", "Write the report as JSON; - for the output");
  SetFooter(command, "Exits with 1 when anything differs.");
  WhenChosen(command, chosen, [options] { return Verify(*options).Run(); });
}

}  // namespace foretoken
