// How likely a model holds a text, and how far it is from another.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "base/files/read_text.h"
#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/backend/device.h"
#include "core/model/measure/text_score.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/kv_format.h"
#include "foretoken/precision.h"
#include "json/json.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {
namespace {

// Which model was read with.
struct ScoredModel {
  std::string name;
  Precision precision = Precision::kBF16;
  KvFormat kv = KvFormat::kBF16;
};

// A text's score, and what it is the score of.
struct PerplexityReport {
  ScoredModel model;
  ScoredModel against;  //< Without a name: there is none.
  std::string text;     //< The file's path.
  std::int64_t text_tokens = 0;
  TextWindows windows;
  std::int64_t scored_bytes = 0;  //< The bytes of the scored tokens.
  TextScore score;
  double seconds = 0;
};

double AgreedShare(const TextScore& score) {
  return static_cast<double>(score.agreed) / static_cast<double>(score.loss.count());
}

double RowsPerSecond(const PerplexityReport& report) {
  return static_cast<double>(report.score.rows) / report.seconds;
}

std::string WithError(double value, double error) {
  return std::isnan(error) ? fmt::format("{:.4f}", value)
                           : fmt::format("{:.4f} +/- {:.4f}", value, error);
}

std::string Line(std::string_view name, const std::string& value) {
  return fmt::format("  {:<18}{}\n", name, value);
}

// Its KV is named where it is not what its precision has by itself.
std::string Described(const ScoredModel& model) {
  std::string text = fmt::format("{} in {}", model.name, PrecisionName(model.precision));
  if (model.kv != UsualKvFormat(model.precision)) {
    text += fmt::format(" with KV in {}", KvFormatName(model.kv));
  }
  return text;
}

// Bits per byte of the scored tokens, where a token loses `loss` nats; NaN where these have no
// bytes.
double BitsPerByte(const PerplexityReport& report, const Mean& loss) {
  if (report.scored_bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  const double nats = loss.value() * static_cast<double>(loss.count());
  return nats / std::numbers::ln2 / static_cast<double>(report.scored_bytes);
}

// For `--json`. What is not known is null.
Json PerplexityJson(const PerplexityReport& report) {
  const TextScore& score = report.score;
  Json object = {{"model", report.model.name},
                 {"precision", PrecisionName(report.model.precision)},
                 {"kv", KvFormatName(report.model.kv)},
                 {"text", report.text},
                 {"text_tokens", report.text_tokens},
                 {"context", report.windows.length},
                 {"stride", report.windows.step},
                 {"windows", report.windows.count},
                 {"scored_tokens", score.loss.count()},
                 {"scored_bytes", report.scored_bytes},
                 {"perplexity", ExpOf(score.loss)},
                 {"standard_error", ExpErrorOf(score.loss)},
                 {"nats_per_token", score.loss.value()},
                 {"bits_per_byte", BitsPerByte(report, score.loss)},
                 {"seconds", report.seconds},
                 {"tokens_per_s", RowsPerSecond(report)}};
  if (report.against.name.empty()) return object;
  object["against"] = {{"model", report.against.name},
                       {"precision", PrecisionName(report.against.precision)},
                       {"kv", KvFormatName(report.against.kv)},
                       {"perplexity", ExpOf(score.reference_loss)},
                       {"standard_error", ExpErrorOf(score.reference_loss)},
                       {"nats_per_token", score.reference_loss.value()},
                       {"bits_per_byte", BitsPerByte(report, score.reference_loss)},
                       {"ratio", ExpOf(score.excess)},
                       {"ratio_standard_error", ExpErrorOf(score.excess)},
                       {"divergence", score.divergence.value()},
                       {"divergence_standard_error", score.divergence.standard_error()},
                       {"same_likeliest", AgreedShare(score)}};
  return object;
}

// For people.
std::string PerplexityText(const PerplexityReport& report) {
  const TextScore& score = report.score;
  const TextWindows& windows = report.windows;
  std::string text =
      fmt::format("{}: {}, {} tokens in {} window{} of {}, of each the last {} scored\n",
                  Described(report.model), report.text, report.text_tokens, windows.count,
                  windows.count == 1 ? "" : "s", windows.length, windows.scored);
  text += Line("perplexity", WithError(ExpOf(score.loss), ExpErrorOf(score.loss)));
  text += Line("bits per byte", fmt::format("{:.4f}", BitsPerByte(report, score.loss)));
  text +=
      Line("scored", fmt::format("{} tokens, {} bytes", score.loss.count(), report.scored_bytes));
  text += Line("read", fmt::format("{} tokens in {}, {:.0f} tokens/s{}", score.rows,
                                   FormatDuration(report.seconds * 1e9), RowsPerSecond(report),
                                   report.against.name.empty() ? "" : " by both models"));
  if (report.against.name.empty()) return text;
  text += fmt::format("against {}\n", Described(report.against));
  text += Line("its perplexity",
               WithError(ExpOf(score.reference_loss), ExpErrorOf(score.reference_loss)));
  text += Line("ratio to that", WithError(ExpOf(score.excess), ExpErrorOf(score.excess)));
  text +=
      Line("divergence", fmt::format("{:.3g} +/- {:.2g} nats per token", score.divergence.value(),
                                     score.divergence.standard_error()));
  text += Line("likeliest token", fmt::format("the same before {} of the scored tokens",
                                              FormatPercent(AgreedShare(score))));
  return text;
}

// As is usual, so that figures can be compared.
constexpr int kUsualContext = 512;

struct PerplexityOptions {
  ModelOptions model;
  ModelOptions against;  // Without a target: that of `model`, with other numbers.
  CoreOptions cores;
  std::string file;
  std::optional<int> context;  // None: kUsualContext, or the models' limit.
  int stride = 0;              // 0: windows side by side.
  std::int64_t limit = 0;
  bool compare = false;
  bool json = false;
};

// What was asked for, checked but not yet loaded.
struct Task {
  OpenedModel model;
  std::optional<OpenedModel> against;
  std::vector<Token> tokens;
  TextWindows windows;
};

Result<std::string> ReadScoredText(const std::string& file) {
  Result<std::string> text = ReadText(file == "-" ? "/dev/stdin" : file);
  if (!text.ok()) return Invalid("{}: {}", file, text.error().message);
  return text;
}

Result<OpenedModel> OpenReference(const PerplexityOptions& options, const OpenedModel& model) {
  FT_ASSIGN_OR_RETURN(OpenedModel against, OpenModel(options.against.TargetSource()));
  if (against.config.vocabulary != model.config.vocabulary ||
      !CheckSameVocabulary(*model.tokenizer, *against.tokenizer).ok()) {
    return Invalid(
        "{} has another vocabulary than {}, so that their probabilities are not of the same "
        "tokens: --against takes a model of the same vocabulary",
        options.against.target, options.model.target);
  }
  return against;
}

Result<int> ChooseWindow(const PerplexityOptions& options, const Task& task) {
  int limit = task.model.config.max_positions;
  if (task.against) limit = std::min(limit, task.against->config.max_positions);
  if (options.context && *options.context > limit) {
    return Invalid("--context {} is more than the model's limit of {} tokens", *options.context,
                   limit);
  }
  return options.context.value_or(std::min(kUsualContext, limit));
}

Result<Task> Prepare(const PerplexityOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadScoredText(options.file));
  Task task;
  FT_ASSIGN_OR_RETURN(task.model, OpenModel(options.model.TargetSource()));
  if (options.compare) {
    FT_ASSIGN_OR_RETURN(task.against, OpenReference(options, task.model));
  }
  FT_ASSIGN_OR_RETURN(const int length, ChooseWindow(options, task));
  task.tokens = task.model.tokenizer->Encode(text, /*add_bos=*/true, /*parse_special=*/false);
  FT_ASSIGN_OR_RETURN(task.windows,
                      TextWindows::Cut(std::ssize(task.tokens), length, options.stride));
  if (options.limit > 0) task.windows.count = std::min(task.windows.count, options.limit);
  return task;
}

std::int64_t ScoredBytes(const Task& task) {
  std::int64_t bytes = 0;
  for (std::int64_t window = 0; window < task.windows.count; ++window) {
    const std::int64_t end = task.windows.Begin(window) + task.windows.length;
    for (std::int64_t at = end - task.windows.scored; at < end; ++at) {
      bytes += std::ssize(task.model.tokenizer->TokenBytes(task.tokens[at]));
    }
  }
  return bytes;
}

Result<std::unique_ptr<LoadedModel>> Load(const OpenedModel& opened, const ModelOptions& options,
                                          const std::shared_ptr<Device>& device) {
  const Numerics numerics =
      NumericsFor(opened, ParsePrecision(options.precision), ParseKvFormat(options.kv));
  return LoadModel(opened, device, numerics, nullptr, LoadingBar(options.TargetSource()));
}

ScoredModel Scored(const ModelOptions& options, const LoadedModel& loaded) {
  return {options.TargetSource().label(), loaded.backend->precision(), loaded.backend->kv_format()};
}

// All passes, with a bar that shows the value so far.
Status ScoreAll(const Task& task, TextScorer* scorer) {
  ProgressBar bar("perplexity", task.windows.count * (task.windows.length - 1));
  while (!scorer->done()) {
    FT_RETURN_IF_ERROR(scorer->Pass());
    const TextScore& score = scorer->score();
    if (score.loss.count() > 0) {
      bar.SetLabel(fmt::format("perplexity {:.4f}", ExpOf(score.loss)));
    }
    bar.Show(Size(score.rows), Size(task.windows.count * (task.windows.length - 1)));
  }
  return {};
}

Result<int> RunPerplexity(PerplexityOptions options) {
  FT_RETURN_IF_ERROR(options.model.ResolveDefaults());
  options.compare = !options.against.target.empty() || !options.against.precision.empty() ||
                    !options.against.kv.empty();
  if (options.against.target.empty()) {
    options.against.target = options.model.target;
    options.against.target_name = options.model.target_name;
  }
  if (options.against.precision.empty()) options.against.precision = "auto";
  if (options.against.kv.empty()) options.against.kv = "auto";
  FT_ASSIGN_OR_RETURN(const Cores cores, ResolveCores(options.cores));
  FT_ASSIGN_OR_RETURN(const Task task, Prepare(options));

  const auto device = std::make_shared<Device>(options.cores.given() ? cores.target : cores.all);
  FT_ASSIGN_OR_RETURN(const auto model, Load(task.model, options.model, device));
  std::unique_ptr<LoadedModel> against;
  if (task.against) {
    FT_ASSIGN_OR_RETURN(against, Load(*task.against, options.against, device));
  }
  TextScorer scorer(device.get(), model->model.get(),
                    against == nullptr ? nullptr : against->model.get(), task.tokens,
                    task.model.tokenizer->bos(), task.windows);
  const std::int64_t start = NowNs();
  FT_RETURN_IF_ERROR(device->Run([&] { return ScoreAll(task, &scorer); }));

  PerplexityReport report{.model = Scored(options.model, *model),
                          .text = options.file,
                          .text_tokens = std::ssize(task.tokens),
                          .windows = task.windows,
                          .scored_bytes = ScoredBytes(task),
                          .score = scorer.score(),
                          .seconds = static_cast<double>(NowNs() - start) / 1e9};
  if (against != nullptr) report.against = Scored(options.against, *against);
  fmt::print("{}", options.json ? PerplexityJson(report).dump(2) + "\n" : PerplexityText(report));
  return kSucceeded;
}

}  // namespace

void AddPerplexityCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "perplexity");
  const OptionGroup add(command);
  auto options = std::make_shared<PerplexityOptions>();
  options->against.precision.clear();
  options->against.kv.clear();
  add("-f,--text,--file", &options->file, "FILE", "The text; - reads standard input")->required();
  AddTargetOptions(add, "-m,--target,--model", &options->model,
                   "The model, a folder or a GGUF file; the bundled one by default");
  add("--precision", &options->model.precision, "P",
      "How its numbers are kept: auto (default), bf16, f32 or portable, as `run` has it")
      ->check(IsPrecision());
  add("--kv", &options->model.kv, "FORMAT",
      "How its keys and values are: auto (default), bf16, f32 or q8_0, as `run` has it")
      ->check(IsKvFormat());
  add("--against", &options->against.target, "MODEL",
      "Compare with this model of the same vocabulary: the ratio of perplexities, the divergence "
      "from it, and how often both hold the same token likeliest");
  add("--against-precision", &options->against.precision, "P",
      "How numbers of the other are kept (default auto); without --against it is the same model")
      ->check(IsPrecision());
  add("--against-kv", &options->against.kv, "FORMAT",
      "How keys and values of the other are (default auto); likewise")
      ->check(IsKvFormat());
  add("-c,--context,--ctx-size", &options->context, "N",
      "Tokens of a window (default 512, or the model's limit)")
      ->check(Between(2, 1 << 24));
  add("--stride", &options->stride, "N",
      "Let a window begin every N tokens and score its last N (default: windows side by side, "
      "their second halves scored)")
      ->check(Between(1, 1 << 24));
  add("--limit", &options->limit, "N", "Read the first N windows only")
      ->check(Between<std::int64_t>(1, std::int64_t{1} << 40));
  add("--target-cores", &options->cores.target, "CORES", "Cores, like 0-3,8; by default all");
  add("-t,--threads", &options->cores.target_count, "N",
      "That many cores, chosen for you; one thread runs on each")
      ->check(Between(1, 4096))
      ->excludes("--target-cores");
  add("--json", &options->json, "Print one JSON object");
  SetFooter(command,
            "Perplexity is exp of the mean of -ln p over the scored tokens, p being what the model "
            "gives the text's next token; its standard error takes tokens for independent. Each "
            "window is read by itself, beginning with the token that begins texts where the "
            "tokenizer has one, which takes its first token's place; what is behind the last whole "
            "window is left out. The value is the same, bit for bit, in every run and for any "
            "number of cores; with --precision portable on every processor.\n"
            "The divergence is Kullback and Leibler's, of the model from the other one.");
  WhenChosen(command, chosen, [options] { return RunPerplexity(*options); });
}

}  // namespace foretoken
