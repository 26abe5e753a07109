#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/foretoken/common/bench_stats.h"
#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/generation.h"
#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/shown_text.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct DemoOptions : DecodingOptions {
  bool json = false;
  std::string color = "auto";
};

constexpr Mode kShown[] = {Mode::kAr, Mode::kSd, Mode::kSsd};
constexpr std::size_t kAr = 0;
constexpr std::size_t kSsd = 2;  // With the first draft.

struct Prompt {
  std::string text;
  bool chat;
};

// Two of each built-in set, in turn.
std::vector<Prompt> PromptsToShow() {
  std::vector<Prompt> prompts;
  const std::vector<PromptSet> sets = BuiltInSets();
  for (int i = 0; i < 2; ++i) {
    for (const PromptSet& set : sets) prompts.push_back({set.prompts[i], !set.plain_text});
  }
  return prompts;
}

// One mode over all prompts.
struct ModeRun {
  Mode mode;
  std::string drafter;  // Empty: none.
  std::unique_ptr<Engine> engine;
  std::vector<Generation> generations;

  RequestStats Total() const {
    RequestStats total;
    for (const Generation& generation : generations) AddStats(generation.stats, &total);
    return total;
  }
  double TokensPerSecond() const {
    const RequestStats total = Total();
    const auto decoded = total.output_tokens - static_cast<double>(generations.size());
    return total.finished_ns > 0 ? decoded / (static_cast<double>(total.finished_ns) / 1e9) : 0;
  }
  bool SameTokensAs(const ModeRun& other) const {
    return std::ranges::equal(generations, other.generations, {}, &Generation::tokens,
                              &Generation::tokens);
  }
};

void PrintText(const Prompt& prompt, const Generation& generation, const Painter& painter) {
  fmt::print("{}", painter.Bold(prompt.chat ? fmt::format("> {}\n", prompt.text) : prompt.text));
  for (std::size_t i = 0; i < generation.tokens.size(); ++i) {
    fmt::print("{}",
               painter.Paint(generation.origins[i], ShownText(generation.PieceOf(i), stdout)));
  }
  fmt::print("\n\n");
  std::fflush(stdout);
}

Json DemoJson(const std::vector<Prompt>& prompts, const std::vector<ModeRun>& runs) {
  Json report = {{"texts", Json::array()}, {"modes", Json::array()}};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    report["texts"].push_back({{"prompt", prompts[i].text},
                               {"chat", prompts[i].chat},
                               {"text", runs[kSsd].generations[i].text}});
  }
  for (std::size_t m = 0; m < runs.size(); ++m) {
    const RequestStats total = runs[m].Total();
    report["modes"].push_back({{"mode", ModeName(runs[m].mode)},
                               {"drafter", runs[m].drafter},
                               {"tokens_per_s", runs[m].TokensPerSecond()},
                               {"speedup", runs[m].TokensPerSecond() / runs[kAr].TokensPerSecond()},
                               {"acceptance_length", total.acceptance_length()},
                               {"hit_rate", ShareJson(HitRate(total))},
                               {"identical", runs[m].SameTokensAs(runs[kAr])}});
  }
  return report;
}

std::string RenderTable(const Json& report) {
  TextTable table(
      {"mode", "drafter", "tokens/s", "speed-up", "tokens/round", "cache hits", "identical"});
  for (const auto& mode : report["modes"]) {
    const auto number = [&mode](const char* key) { return mode[key].get<double>(); };
    table.Add({mode["mode"], mode["drafter"] == "" ? "-" : mode["drafter"],
               fmt::format("{:.0f}", number("tokens_per_s")),
               fmt::format("{:.2f}x", number("speedup")),
               fmt::format("{:.2f}", number("acceptance_length")),
               FormatPercent(mode["hit_rate"].is_null() ? -1 : number("hit_rate")),
               mode == report["modes"][0] ? "-"
               : mode["identical"]        ? "yes"
                                          : "NO"});
  }
  return table.Render();
}

Result<Request> MakeRequest(const DemoOptions& options, const Tokenizer& tokenizer,
                            const Prompt& prompt) {
  Request request;
  const bool chat = prompt.chat && tokenizer.has_chat_template();
  FT_ASSIGN_OR_RETURN(request.prompt, EncodePrompt(tokenizer, prompt.text, chat));
  request.sampling = options.generation.sampling;
  request.stop = options.generation.stop;
  request.continues_text = !chat;
  return request;
}

// The modes with the draft of `options`, and those that draft with each of `heads` in its place.
Result<std::vector<ModeRun>> OpenRuns(const DemoOptions& options, const Decoding& decoding,
                                      const std::vector<std::string>& heads) {
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options.model, *decoding.target, 0));
  std::vector<ModeRun> runs;
  const auto open = [&](const DemoOptions& with, Mode mode) -> Status {
    ModeRun& run = runs.emplace_back();
    run.mode = mode;
    if (mode.drafts()) run.drafter = with.model.DraftSource().label();
    FT_ASSIGN_OR_RETURN(run.engine, with.OpenEngine(mode, decoding, context));
    return {};
  };
  for (const Mode mode : kShown) FT_RETURN_IF_ERROR(open(options, mode));
  for (const std::string& head : heads) {
    DemoOptions with = options;
    with.model.draft = head;
    FT_RETURN_IF_ERROR(with.model.ResolveDefaults(with.datastore.directory));
    for (const Mode mode : {Mode::kSd, Mode::kSsd}) FT_RETURN_IF_ERROR(open(with, mode));
  }
  return runs;
}

Result<int> Demo(DemoOptions options) {
  const std::vector<std::string> heads =
      options.model.given() ? std::vector<std::string>() : BundledHeads();
  FT_ASSIGN_OR_RETURN(const Mode mode, options.Choose());
  FT_RETURN_IF_ERROR(options.CheckFor(kShown));
  FT_ASSIGN_OR_RETURN(const Decoding decoding, options.Load(mode));
  const auto& [cores, target, datastore] = decoding;
  FT_ASSIGN_OR_RETURN(std::vector<ModeRun> runs, OpenRuns(options, decoding, heads));

  const Painter painter(UseColor(options.color, stdout));
  if (!options.json) {
    fmt::print("Target {} on cores {}, draft {} on cores {} (in ssd; else on the target's)\n",
               options.model.TargetSource().label(), FormatCores(cores.target),
               options.model.DraftSource().label(), FormatCores(cores.draft));
    fmt::print("{}\n", painter.Legend());
  }
  const std::vector<Prompt> prompts = PromptsToShow();
  for (ModeRun& run : runs) {  // Warm up.
    FT_ASSIGN_OR_RETURN(Request request, MakeRequest(options, *target->tokenizer(), prompts[0]));
    FT_ASSIGN_OR_RETURN(const Generation ignored, Generate(*run.engine, std::move(request)));
  }
  for (const Prompt& prompt : prompts) {
    for (ModeRun& run : runs) {
      FT_ASSIGN_OR_RETURN(Request request, MakeRequest(options, *target->tokenizer(), prompt));
      FT_ASSIGN_OR_RETURN(Generation generation, Generate(*run.engine, std::move(request)));
      FT_RETURN_IF_ERROR(CheckFiniteLogits({&generation, 1}, target->source().label()));
      run.generations.push_back(std::move(generation));
    }
    if (!options.json) PrintText(prompt, runs[kSsd].generations.back(), painter);
  }

  const Json report = DemoJson(prompts, runs);
  fmt::print("{}", options.json ? report.dump(2) + "\n" : RenderTable(report));
  for (const ModeRun& run : runs) {
    if (!run.SameTokensAs(runs[kAr])) {
      PrintError("the modes did not give the same tokens; `foretoken verify` shows where");
      return 1;
    }
  }
  return 0;
}

}  // namespace

void AddDemoCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "demo",
                                 "Decode built-in prompts in every mode, with every bundled draft, "
                                 "and compare text and speed");
  const OptionGroup add(command, "Output");
  auto options = std::make_shared<DemoOptions>();
  options->mode = "ssd";  // Which needs most.
  options->generation.stop.max_tokens = 160;
  AddModelOptions(command, &options->model);
  AddSpeculationOptions(command, &options->speculation);
  AddMemoryOptions(command, &options->model, &options->speculation);
  AddSamplingOptions(command, &options->generation);
  AddStopOptions(command, &options->generation);
  AddCoreOptions(command, &options->cores);
  add("--json", &options->json, "Print one JSON object at the end instead of text");
  AddColorOption(command, &options->color);
  WhenChosen(command, chosen, [options] { return Demo(*options); });
}

}  // namespace foretoken
