// Answers of a target and the states that its passes had: what drafters are trained on.

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "apps/lab/rollout/rollout_prompts.h"
#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/model/measure/text_taps.h"
#include "door/assembly/loaded_model.h"
#include "door/learning/capture_file.h"
#include "foretoken/generate.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct CaptureOptions : DecodingOptions {
  PromptOptions prompts;
  std::string out;
  std::string layers;
  int samples = 1;
  int unprompted = 0;
  int batch = 16;
  int file_mb = 512;
  bool given = false;  // The prompts themselves are read, and none is answered.
  bool json = false;
};

// The layers that EAGLE-3's authors tap, as far as the target has so many.
std::vector<int> UsualLayers(int layers) {
  std::vector<int> usual = {2, layers / 2, layers - 3};
  for (int& layer : usual) layer = std::clamp(layer, 0, layers);
  return usual;
}

Result<std::vector<int>> ParseLayers(const std::string& text, int layers) {
  if (text.empty()) return UsualLayers(layers);
  std::vector<int> parsed;
  for (const std::string& item : SplitList(text)) {
    int layer = -1;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), layer);
    if (error != std::errc() || end != item.data() + item.size() || layer < 0 || layer > layers) {
      return Invalid(
          "--layers {}: '{}' is none of the target's 0 to {}, of which the last is what leaves its "
          "last layer",
          text, item, layers);
    }
    parsed.push_back(layer);
  }
  if (parsed.empty()) return InvalidInput("--layers names no layer");
  return parsed;
}

// What is to be answered, one prompt for each answer.
Result<std::vector<std::vector<Token>>> Prompts(const CaptureOptions& options,
                                                const LanguageModel& target, int context) {
  std::vector<std::vector<Token>> prompts;
  const Tokenizer& tokenizer = *target.tokenizer();
  if (options.unprompted > 0) {
    if (!tokenizer.bos().has_value()) {
      return InvalidInput(
          "--unprompted needs a token that begins texts, and this model has none: give --prompts");
    }
    prompts.assign(options.unprompted, {*tokenizer.bos()});
    if (options.prompts.files.empty()) return prompts;
  }
  FT_ASSIGN_OR_RETURN(const auto sets, EncodeSets(options.prompts, tokenizer, context,
                                                  options.generation.stop.max_tokens));
  for (const EncodedSet& set : sets) {
    for (const auto& prompt : set.prompts) {
      prompts.insert(prompts.end(), Size(options.samples), prompt);
    }
  }
  return prompts;
}

// The prompts where they are what is to be read. Of JSON lines they may be token ids.
Result<std::vector<std::vector<Token>>> GivenTexts(const CaptureOptions& options,
                                                   const LanguageModel& target, int context) {
  if (options.unprompted > 0) {
    return InvalidInput(
        "--given reads what --prompts has, and --unprompted has the model begin: give one of them");
  }
  const PromptEncoding encoding{.tokenizer = *target.tokenizer(), .raw = options.prompts.raw};
  FT_ASSIGN_OR_RETURN(auto prompts, ReadRolloutPrompts(options.prompts, encoding, context));
  std::vector<std::vector<Token>> texts;
  for (RolloutPrompt& prompt : prompts) texts.push_back(std::move(prompt.tokens));
  return texts;
}

class CaptureRun {
 public:
  explicit CaptureRun(CaptureOptions options) : options_(std::move(options)) {}

  Result<int> Run() {
    FT_ASSIGN_OR_RETURN(const Mode chosen, options_.Choose());
    const Mode mode = options_.given ? Mode::kAr : chosen;
    FT_RETURN_IF_ERROR(options_.CheckFor({&mode, 1}));
    FT_ASSIGN_OR_RETURN(const Decoding decoding, options_.Load(mode));
    const LanguageModel& target = *decoding.target;
    FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options_.model, target, /*wanted=*/0));
    FT_ASSIGN_OR_RETURN(const auto prompts, options_.given ? GivenTexts(options_, target, context)
                                                           : Prompts(options_, target, context));
    const ModelConfig& config = target.loaded().model->config();
    FT_ASSIGN_OR_RETURN(const auto layers, ParseLayers(options_.layers, config.layer_count()));
    FT_ASSIGN_OR_RETURN(CaptureWriter writer,
                        CaptureWriter::Begin(options_.out,
                                             {.layers = layers,
                                              .hidden = config.hidden,
                                              .tokenizer = target.tokenizer()->fingerprint()},
                                             Size(options_.file_mb) << 20));
    const int answered = options_.given ? 0 : options_.generation.stop.max_tokens;
    const int longest = Longest(prompts) + answered;
    TapShape taps{.points = layers, .hidden = config.hidden};
    taps.points.push_back(TapShape::kFinalState);
    TextTaps reader(target.loaded().model.get(), taps, longest);
    FT_RETURN_IF_ERROR(options_.given ? ReadAll(prompts, decoding, &reader, &writer)
                                      : Answer(prompts, mode, decoding, context, &reader, &writer));
    FT_RETURN_IF_ERROR(writer.Finish());
    Report(prompts.size(), writer);
    return kSucceeded;
  }

 private:
  // Nothing is answered.
  Status ReadAll(const std::vector<std::vector<Token>>& texts, const Decoding& decoding,
                 TextTaps* reader, CaptureWriter* writer) {
    ProgressBar bar("capture", std::ssize(texts));
    const std::int64_t start = NowNs();
    for (const std::vector<Token>& text : texts) {
      FT_RETURN_IF_ERROR(decoding.target->loaded().device->Run(
          [&] { return Read(text, /*answer=*/{}, reader, writer); }));
      bar.Advance();
    }
    reading_ns_ += NowNs() - start;
    return {};
  }

  Status Answer(const std::vector<std::vector<Token>>& prompts, Mode mode, const Decoding& decoding,
                int context, TextTaps* reader, CaptureWriter* writer) {
    const int longest = Longest(prompts) + options_.generation.stop.max_tokens;
    FT_ASSIGN_OR_RETURN(
        const EngineOptions wanted,
        options_.EngineFor(std::vector{mode}, decoding.cores, options_.batch,
                           std::min(longest + options_.speculation.MostLookahead(), context)));
    FT_ASSIGN_OR_RETURN(const auto engine, Engine::Open(decoding.target, wanted));
    return AnswerAll(prompts, decoding, engine.get(), reader, writer);
  }

  static int Longest(const std::vector<std::vector<Token>>& prompts) {
    std::size_t longest = 0;
    for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
    return longest;
  }

  Status AnswerAll(const std::vector<std::vector<Token>>& prompts, const Decoding& decoding,
                   Engine* engine, TextTaps* reader, CaptureWriter* writer) {
    ProgressBar bar("capture", std::ssize(prompts));
    const auto group = Size(options_.batch) * 8;  // Its answers are in memory.
    for (std::size_t begin = 0; begin < prompts.size(); begin += group) {
      std::vector<Request> requests;
      for (std::size_t i = begin; i < std::min(prompts.size(), begin + group); ++i) {
        Request& request = requests.emplace_back();
        request.prompt = prompts[i];
        request.sampling = options_.generation.sampling;
        request.sampling.seed += i;
        request.stop = options_.generation.stop;
        request.datastore = decoding.datastore.tenant;
      }
      const std::int64_t start = NowNs();
      FT_ASSIGN_OR_RETURN(const std::vector<Generation> answers,
                          Generate(*engine, std::move(requests), options_.batch));
      FT_RETURN_IF_ERROR(CheckFiniteLogits(answers, decoding.target->source().label()));
      answering_ns_ += NowNs() - start;
      const std::int64_t reading = NowNs();
      const auto& device = decoding.target->loaded().device;
      for (std::size_t i = 0; i < answers.size(); ++i) {
        const Status read = device->Run(
            [&] { return Read(prompts[begin + i], answers[i].tokens, reader, writer); });
        FT_RETURN_IF_ERROR(read);
        bar.Advance();
      }
      reading_ns_ += NowNs() - reading;
    }
    return {};
  }

  Status Read(std::vector<Token> tokens, std::span<const Token> answer, TextTaps* reader,
              CaptureWriter* writer) {
    const std::size_t prompt = tokens.size();
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    answered_ += std::ssize(answer);
    return writer->Add(tokens, prompt, reader->Read(tokens));
  }

  void Report(std::size_t answers, const CaptureWriter& writer) const {
    const double answering = static_cast<double>(answering_ns_) / 1e9;
    const double reading = static_cast<double>(reading_ns_) / 1e9;
    if (options_.json) {
      const Json report = {{"answers", answers},        {"answer_tokens", answered_},
                           {"tokens", writer.tokens()}, {"files", writer.files()},
                           {"bytes", writer.bytes()},   {"answering_seconds", answering},
                           {"reading_seconds", reading}};
      fmt::print("{}\n", report.dump(2));
      return;
    }
    fmt::print(
        "{} answers of {} tokens, with their prompts {}, in {} file{} of {} in {}\n"
        "{:.1f} s to answer ({:.0f} tokens/s), {:.1f} s to read states and write\n",
        answers, answered_, writer.tokens(), writer.files(), writer.files() == 1 ? "" : "s",
        FormatBytes(static_cast<double>(writer.bytes())), options_.out, answering,
        static_cast<double>(answered_) / std::max(answering, 1e-9), reading);
  }

  CaptureOptions options_;
  std::int64_t answered_ = 0;
  std::int64_t answering_ns_ = 0;
  std::int64_t reading_ns_ = 0;
};

}  // namespace

void AddCaptureCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "capture");
  const OptionGroup add(command);
  auto options = std::make_shared<CaptureOptions>();
  options->generation.sampling.temperature = 1;
  add("-o,--out", &options->out, "FOLDER", "Where capture-*.safetensors are written")->required();
  add("--layers", &options->layers, "LIST",
      "Layers whose entering streams are written, such as 2,16,29; the model's number of layers is "
      "what leaves the last (default: EAGLE-3's three, 2, L/2 and L - 3 of L)");
  add("--samples", &options->samples, "N", "Answers to each prompt, of different seeds")
      ->check(Between(1, 1 << 20));
  add("--given", &options->given,
      "Answer nothing: write the states of the prompts themselves. Their lines may be those of "
      "`foretoken rollout`, so that a text can be `tokens`");
  add("--unprompted", &options->unprompted, "N",
      "N texts that the model begins itself, in place of the built-in prompts")
      ->check(Between(1, 1 << 24));
  add("-b,--batch,--parallel", &options->batch, "N", "Answers written together (also -np)")
      ->check(Between(1, 256));
  add("--file-mb", &options->file_mb, "N", "About how large a file becomes")
      ->check(Between(1, 1 << 20));
  AddPromptOptions(command, &options->prompts);
  AddDecodingOptions(command, options.get());
  add("--json", &options->json, "Print one JSON object at the end instead of text");
  SetFooter(
      command,
      "Answers are sampled at temperature 1 unless --temp says otherwise, and are the same in "
      "every mode; what is read of each position is what decoding has there, bit for bit.\n"
      "docs/look_up/formats.md defines the files.");
  WhenChosen(command, chosen, [options] { return CaptureRun(*options).Run(); });
}

}  // namespace foretoken
