// Which sub-layers a model leaves out best when it drafts for itself.

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/model/model_weights.h"
#include "core/model/self/likeliest_tokens.h"
#include "core/model/self/skip_search.h"
#include "core/model/self/skip_set.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/generate.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct SkipSearchOptions : DecodingOptions {
  PromptOptions prompts;
  std::string out = "skip.json";
  double ratio = 0.45;
  int sets = 200;
  std::uint64_t search_seed = 1;
  bool given = false;
  int batch = 16;
  bool json = false;
};

// Compares sets on texts of the target. Its device's thread calls.
class Comparison {
 public:
  Comparison(const LoadedModel& target, std::vector<AskedText> texts)
      : target_(target), texts_(std::move(texts)) {
    choices_ = LikeliestTokens(target_.model.get(), texts_);
  }

  int tokens() const { return choices_.size(); }

  ComparedSet Compare(SkippedSublayers skipped) const {
    const ModelConfig config = Without(skipped, target_.weights->config()).value();
    const auto draft = target_.weights->Part(config)->MakeModel(target_.backend.get());
    const std::vector<Token> drafted = LikeliestTokens(draft.get(), texts_);
    std::size_t same = 0;
    for (std::size_t i = 0; i < drafted.size(); ++i) same += drafted[i] == choices_[i] ? 1 : 0;
    ComparedSet set{.skipped = std::move(skipped)};
    set.agreement = static_cast<double>(same) / static_cast<double>(drafted.size());
    // A pass over few rows takes as long as it takes to read the weights.
    set.cost = static_cast<double>(draft->weight_bytes()) /
               static_cast<double>(target_.model->weight_bytes());
    set.speedup = PredictedSpeedup(set.agreement, set.cost);
    return set;
  }

 private:
  const LoadedModel& target_;
  std::vector<AskedText> texts_;
  std::vector<Token> choices_;  // The target's, of all texts.
};

class SkipSearchRun {
 public:
  explicit SkipSearchRun(SkipSearchOptions options) : options_(std::move(options)) {}

  Result<int> Run() {
    if (options_.given) options_.generation.stop.max_tokens = 0;
    FT_ASSIGN_OR_RETURN(const Mode mode, options_.Choose());
    FT_RETURN_IF_ERROR(options_.CheckFor({&mode, 1}));
    FT_ASSIGN_OR_RETURN(const Decoding decoding, options_.Load(mode));
    LoadedModel& target = decoding.target->loaded();
    FT_ASSIGN_OR_RETURN(SkipSearch search,
                        SkipSearch::Begin(target.weights->config(), options_.ratio, options_.sets,
                                          options_.search_seed));
    FT_ASSIGN_OR_RETURN(std::vector<AskedText> texts, Texts(mode, decoding));
    const std::int64_t start = NowNs();
    CatchInterrupts();
    target.device->Run([&] { return Search(target, std::move(texts), &search); });
    const bool interrupted = Interrupted();
    LetInterruptsEnd();
    if (!search.best().has_value()) {
      PrintError("interrupted before a set was compared: nothing is written");
      return kCheckFailed;
    }
    const ComparedSet& best = *search.best();
    SkipSet set{.model = FingerprintText(target.identity.model),
                .skipped = best.skipped,
                .agreement = best.agreement,
                .cost = best.cost,
                .speedup = best.speedup,
                .tokens = tokens_,
                .sets = search.compared()};
    FT_RETURN_IF_ERROR(WriteSkipSet(options_.out, set));
    Report(set, interrupted, static_cast<double>(NowNs() - start) / 1e9);
    return kSucceeded;
  }

 private:
  // What the target answers, or the prompts themselves.
  Result<std::vector<AskedText>> Texts(Mode mode, const Decoding& decoding) const {
    const LanguageModel& target = *decoding.target;
    FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options_.model, target, /*wanted=*/0));
    const int answer = options_.generation.stop.max_tokens;
    FT_ASSIGN_OR_RETURN(const auto sets,
                        EncodeSets(options_.prompts, *target.tokenizer(), context, answer));
    std::vector<AskedText> texts;
    for (const EncodedSet& each : sets) {
      for (const auto& prompt : each.prompts) texts.push_back({.tokens = prompt, .first = 1});
    }
    if (!options_.given) FT_RETURN_IF_ERROR(Answer(mode, decoding, context, &texts));
    std::erase_if(texts, [](const AskedText& text) { return text.asked() < 1; });
    if (texts.empty()) {
      return InvalidInput(
          "no text has a token behind others whose place could be asked for: give longer prompts, "
          "or let them be answered");
    }
    return texts;
  }

  Status Answer(Mode mode, const Decoding& decoding, int context,
                std::vector<AskedText>* texts) const {
    FT_ASSIGN_OR_RETURN(const EngineOptions wanted,
                        options_.EngineFor({&mode, 1}, decoding.cores, options_.batch, context));
    FT_ASSIGN_OR_RETURN(const auto engine, Engine::Open(decoding.target, wanted));
    std::vector<Request> requests;
    for (const AskedText& text : *texts) {
      Request& request = requests.emplace_back();
      request.prompt = text.tokens;
      request.sampling = options_.generation.sampling;
      request.sampling.seed += requests.size() - 1;
      request.stop = options_.generation.stop;
    }
    ProgressBar bar("answers", std::ssize(requests) * options_.generation.stop.max_tokens);
    const GenerateHooks hooks{.on_token = [&](SequenceId, const EmittedToken&) { bar.Advance(); }};
    FT_ASSIGN_OR_RETURN(const std::vector<Generation> answers,
                        Generate(*engine, std::move(requests), options_.batch, hooks));
    FT_RETURN_IF_ERROR(CheckFiniteLogits(answers, decoding.target->source().label()));
    for (std::size_t i = 0; i < texts->size(); ++i) {
      AskedText& text = (*texts)[i];
      text.first = Int(text.tokens.size());
      text.tokens.insert(text.tokens.end(), answers[i].tokens.begin(), answers[i].tokens.end());
    }
    return {};
  }

  // Returns whether it was not interrupted.
  bool Search(const LoadedModel& target, std::vector<AskedText> texts, SkipSearch* search) {
    ProgressBar bar("sets", options_.sets);
    const Comparison comparison(target, std::move(texts));
    tokens_ = comparison.tokens();
    while (!Interrupted()) {
      std::optional<SkippedSublayers> next = search->Next();
      if (!next.has_value()) return true;
      search->Tell(comparison.Compare(std::move(*next)));
      const ComparedSet& best = *search->best();
      bar.SetLabel(fmt::format("best: {} of tokens alike at {} of the cost",
                               FormatPercent(best.agreement), FormatPercent(best.cost)));
      bar.Advance();
    }
    return false;
  }

  void Report(const SkipSet& set, bool interrupted, double seconds) const {
    if (options_.json) {
      const Json report = {
          {"file", options_.out}, {"skip", set.skipped.ToText()}, {"agreement", set.agreement},
          {"cost", set.cost},     {"speedup", set.speedup},       {"tokens", set.tokens},
          {"sets", set.sets},     {"interrupted", interrupted},   {"seconds", seconds}};
      fmt::print("{}\n", report.dump(2));
      return;
    }
    fmt::print(
        "{} {} sets in {:.1f} s, on {} tokens. The best leaves out {}: it agrees on {} of tokens "
        "at {} of the cost, for which {:.2f} times the speed of mode ar is to be expected.\n"
        "Draft with it: -md self:skip={}\n",
        interrupted ? "Interrupted after" : "Compared", set.sets, seconds, set.tokens,
        set.skipped.ToText(), FormatPercent(set.agreement), FormatPercent(set.cost), set.speedup,
        options_.out);
  }

  SkipSearchOptions options_;
  int tokens_ = 0;
};

}  // namespace

void AddSkipSearchCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "skip-search");
  const OptionGroup add(command);
  auto options = std::make_shared<SkipSearchOptions>();
  options->generation.stop.max_tokens = 64;  // Every set reads them.
  add("-o,--output", &options->out, "FILE", "Where the best set is written (default skip.json)");
  add("--sets", &options->sets, "N", "How many sets are compared (default 200)")
      ->check(Between(1, 1 << 20));
  add("--ratio", &options->ratio, "R",
      "Share of all attention layers and MLPs that the first sets leave out (default 0.45)")
      ->check(Between(0.0, 1.0));
  add("--search-seed", &options->search_seed, "N", "Seed of the search (default 1)");
  add("--given", &options->given,
      "Compare on the prompts themselves, as texts; by default on the target's answers to them");
  add("-b,--batch,--parallel", &options->batch, "N", "Answers written together (also -np)")
      ->check(Between(1, 256));
  AddPromptOptions(command, &options->prompts);
  AddDecodingOptions(command, options.get());
  add("--json", &options->json, "Print one JSON object at the end instead of text");
  SetFooter(command,
            "A set is judged by how often what is left of the model holds the same token likeliest "
            "as the whole model does, before each token of the texts, and by the bytes of weights "
            "that it reads for a token; by both, the speed that is to be expected is predicted. A "
            "third of the sets are random, each later one changes the best so far. Ctrl-C ends the "
            "search with the best so far.\n"
            "docs/do/self_speculation.md says more.");
  WhenChosen(command, chosen, [options] { return SkipSearchRun(*options).Run(); });
}

}  // namespace foretoken
