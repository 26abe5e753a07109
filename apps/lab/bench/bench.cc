#include "apps/lab/bench/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "apps/foretoken/common/terminal.h"
#include "apps/lab/bench/bench_report.h"
#include "apps/lab/bench/drafter_list.h"
#include "apps/lab/bench/lossy_cost.h"
#include "apps/lab/bench/script_option.h"
#include "base/numbers/integers.h"
#include "base/threads/cores.h"
#include "door/api/plan_json.h"
#include "door/api/study.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr int kWarmUpTokens = 128;  // Tokens of each prompt.

// A mode on a device, ready to run.
struct Contestant {
  std::string label;
  Mode mode = Mode::kAr;
  std::string drafter;  // Which of several; empty: there are not.
  std::shared_ptr<LanguageModel> target;
  std::unique_ptr<Engine> engine;
  bool retrieves = true;  // From the datastore that was given, if any.
};

// As given; modes have defaults of their own.
Json SpeculationJson(const SpeculationOptions& options) {
  PlanOptions plan = options.plan;
  if (!plan.lookahead) plan.lookahead = SpeculationOptions::kDefaultLookahead;
  if (!plan.ssd_preset) {
    if (!plan.fanout) plan.fanout = Fanout{FanoutRule::kGiven, {kDefaultFanout}};
    if (!plan.fallback) plan.fallback = Fallback::kJit;
    if (!plan.tree_width) plan.tree_width = 1;
  }
  Json described = PlanJson(plan);
  described["verify"] = options.verification;
  described["draft_process"] = options.draft_process;
  if (options.is_lossy()) described["lossy"] = options.lossy;
  return described;
}

class Bench {
 public:
  explicit Bench(BenchOptions options) : options_(std::move(options)) {}
  Result<int> Run();

 private:
  Status Load();
  // What "all" stands for: every mode that there is everything for.
  std::vector<Mode> AllModes() const;
  Status EncodePrompts();
  Status MakeContestants();
  // Modes, or of one mode a contestant for each fallback that is to be compared.
  Status AddModes(std::span<const Mode> modes, const ListedDrafter& drafter,
                  const DecodingOptions& options);
  Status Add(Contestant contestant, const DecodingOptions& options);
  bool drafts() const { return options_.model.has_draft() || !drafters_.empty(); }
  Result<std::vector<Generation>> RunGroup(Contestant* contestant,
                                           std::span<const std::vector<Token>> prompts,
                                           std::uint64_t first_seed, int max_tokens);
  Status Learn(std::span<const std::vector<Token>> prompts, std::span<const Generation> outputs);
  Status WarmUp();
  Result<SetResult> RunSet(const EncodedSet& set, ProgressBar* progress);
  Json Meta() const;
  Result<int> Report() const;

  bool synthetic() const { return !options_.model.synthetic.empty(); }
  std::size_t batch() const { return options_.batch; }

  BenchOptions options_;
  std::vector<Mode> modes_;
  std::vector<ListedDrafter> drafters_;
  std::optional<Script> script_;
  std::vector<PromptAnswer> answers_;  // What the target is to say.
  Decoding decoding_;
  std::shared_ptr<LanguageModel> target_;
  std::shared_ptr<LanguageModel> target_on_all_;
  std::vector<EncodedSet> sets_;
  int engine_context_ = 0;
  NeighbourPlan neighbour_;
  std::vector<Contestant> contestants_;
  std::vector<SetResult> results_;
  BenchContext context_;
};

Status Bench::Load() {
  FT_RETURN_IF_ERROR(options_.generation.Finish());
  FT_ASSIGN_OR_RETURN(neighbour_, NeighbourPlan::Read(options_.neighbour));
  if (!options_.drafters.empty()) {
    FT_ASSIGN_OR_RETURN(drafters_, ParseDrafters(options_.drafters));
  }
  FT_RETURN_IF_ERROR(options_.model.ResolveDefaults(options_.datastore.directory));
  if (options_.modes.empty()) options_.modes = drafts() ? "ar,sd,ssd" : "ar";
  if (options_.modes == "all") {
    modes_ = AllModes();
  } else {
    FT_ASSIGN_OR_RETURN(modes_, ParseModes(options_.modes));
  }
  if (drafters_.empty()) {
    for (const Mode mode : modes_) {
      // The first draft is checked below: it may come by other options here.
      if (mode.drafter == DrafterId::kModel) continue;
      FT_RETURN_IF_ERROR(options_.model.CheckDraftOf(mode));
    }
  }
  for (const ListedDrafter& drafter : drafters_) {
    if (drafter.mode && std::ranges::find(modes_, *drafter.mode) == modes_.end()) {
      modes_.push_back(*drafter.mode);
    }
  }
  FT_RETURN_IF_ERROR(options_.CheckFor(modes_));
  if (!options_.fallbacks.empty() && std::ranges::none_of(modes_, &Mode::during)) {
    return InvalidInput("--compare-fallbacks is about mode ssd: add it to --modes");
  }
  const bool speculative = modes_ != std::vector<Mode>{Mode::kAr};
  if (std::ranges::any_of(modes_, NeedsDraft) && !drafts()) {
    return InvalidInput(
        "modes sd and ssd need a draft model; name it with --draft, --drafters or "
        "--draft-synthetic");
  }
  if (!options_.script.empty()) {
    FT_ASSIGN_OR_RETURN(script_, ParseScript(options_.script));
    if (options_.constraint.given()) {
      return InvalidInput(
          "--scripted-acceptance draws tokens that no grammar allows: give only one");
    }
    if (options_.datastore.learn) {
      return InvalidInput("--learn would add tokens that --scripted-acceptance made up: give one");
    }
  }
  if (options_.scripted_answers) {
    if (synthetic()) {
      return InvalidInput("--scripted-answers needs a model with a tokenizer, and this has none");
    }
    if (options_.datastore.learn) {
      return InvalidInput("--learn would add texts that --scripted-answers gave: give one");
    }
  }
  if (synthetic()) options_.generation.stop.ignore_eos = true;
  FT_ASSIGN_OR_RETURN(decoding_, options_.Load());
  target_ = decoding_.target;
  const Cores& cores = decoding_.cores;
  const bool ssd_only = modes_ == std::vector<Mode>{Mode::kSsd};
  if (speculative && !ssd_only && !options_.only_target_cores && cores.all != cores.target) {
    target_on_all_ = target_->OnCores(cores.all);
  }
  context_.scripted = script_.has_value() || options_.scripted_answers;
  context_.same_distribution_only = options_.speculation.verification == "rejection" &&
                                    options_.generation.sampling.temperature > 0;
  context_.lossy = options_.speculation.is_lossy();
  context_.batch = options_.batch;
  context_.weight_bytes = target_->facts().weight_bytes;
  context_.kv_bytes_per_token = target_->facts().kv_bytes_per_token;
  return {};
}

std::vector<Mode> Bench::AllModes() const {
  const auto runs = [this](Mode mode) {
    if (!mode.drafts()) return true;
    switch (InfoOf(mode.drafter).needs) {
      case DrafterNeeds::kText:
      case DrafterNeeds::kTextAndDatastore:
        return true;
      case DrafterNeeds::kDatastore:
        return options_.datastore.given();
      case DrafterNeeds::kDraftModel:
        return drafters_.empty() ? options_.model.HasDraftOf(mode)
                                 : mode.drafter == DrafterId::kModel;
      case DrafterNeeds::kDrafters:
        return options_.model.has_draft();
    }
    return false;
  };
  std::vector<Mode> modes;
  std::ranges::copy_if(kModes, std::back_inserter(modes), runs);
  return modes;
}

Status Bench::EncodePrompts() {
  const ModelFacts& facts = target_->facts();
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options_.model, *target_, /*wanted=*/0));
  const int max_tokens = options_.generation.stop.max_tokens;
  if (target_->tokenizer() == nullptr) {
    if (!options_.prompts.files.empty()) {
      return InvalidInput(
          "--prompts needs a model with a tokenizer; a synthetic one gets random tokens");
    }
    if (options_.prompt_tokens + max_tokens > facts.max_context) {
      return Invalid(
          "--prompt-tokens {} and --max-tokens {} do not fit the model's context of {} tokens",
          options_.prompt_tokens, max_tokens, facts.max_context);
    }
    const int count = options_.prompts.limit.value_or(8);
    sets_.push_back(RandomSet(facts.vocabulary, options_.prompt_tokens, count, 1));
    return {};
  }
  FT_ASSIGN_OR_RETURN(sets_,
                      EncodeSets(options_.prompts, *target_->tokenizer(), context, max_tokens));
  if (options_.scripted_answers) {
    FT_ASSIGN_OR_RETURN(answers_, AnswersOf(sets_));
  }
  return {};
}

Status Bench::MakeContestants() {
  std::size_t longest = 0;
  for (const EncodedSet& set : sets_) {
    for (const auto& prompt : set.prompts) longest = std::max(longest, prompt.size());
  }
  const int needed =
      Int(longest) + options_.generation.stop.max_tokens + options_.speculation.MostLookahead();
  engine_context_ = std::min(needed, target_->facts().max_context);
  const auto has_drafter = [](Mode mode) { return NeedsDraft(mode) || mode.planned(); };
  if (drafters_.empty()) return AddModes(modes_, {}, options_);
  std::vector<Mode> without;
  std::vector<Mode> with;
  for (const Mode mode : modes_) (has_drafter(mode) ? with : without).push_back(mode);
  FT_RETURN_IF_ERROR(AddModes(without, {}, options_));
  for (const ListedDrafter& drafter : drafters_) {
    if (drafter.mode) continue;
    DecodingOptions options = options_;
    options.model.draft = drafter.draft;
    FT_RETURN_IF_ERROR(options.model.ResolveDefaults(options_.datastore.directory));
    FT_RETURN_IF_ERROR(AddModes(with, drafter, options));
  }
  return {};
}

Status Bench::AddModes(std::span<const Mode> modes, const ListedDrafter& drafter,
                       const DecodingOptions& options) {
  const std::vector<std::string> fallbacks = SplitList(options_.fallbacks);
  const std::string suffix = drafter.name.empty() ? "" : ":" + drafter.name;
  const auto contestant = [&](Mode mode, std::string_view more, const auto& target) {
    // A drafter without a model is its mode.
    const bool alone = std::ranges::any_of(
        drafters_, [mode](const ListedDrafter& listed) { return listed.mode == mode; });
    return Contestant{.label = fmt::format("{}{}{}", ModeName(mode), suffix, more),
                      .mode = mode,
                      .drafter = alone ? std::string(ModeName(mode)) : drafter.name,
                      .target = target};
  };
  for (const Mode mode : modes) {
    if (!mode.during() || fallbacks.empty()) {
      FT_RETURN_IF_ERROR(Add(contestant(mode, "", target_), options));
      continue;
    }
    for (const std::string& fallback : fallbacks) {
      DecodingOptions with_fallback = options;
      FT_ASSIGN_OR_RETURN(with_fallback.speculation.plan.fallback, ParseFallback(fallback));
      Contestant compared = contestant(mode, "/" + fallback, target_);
      compared.retrieves = fallback == FallbackName(Fallback::kRetrieval);
      FT_RETURN_IF_ERROR(Add(std::move(compared), with_fallback));
    }
  }
  for (const Mode mode : modes) {
    if (mode.during() || mode.planned() || target_on_all_ == nullptr) continue;
    FT_RETURN_IF_ERROR(Add(contestant(mode, "@all", target_on_all_), options));
  }
  return {};
}

Status Bench::Add(Contestant contestant, const DecodingOptions& options) {
  FT_ASSIGN_OR_RETURN(const EngineOptions wanted,
                      options.EngineFor(options.datastore.ModesFor(contestant.mode),
                                        decoding_.cores, options_.batch, engine_context_));
  StudyOptions study{.script = script_, .answer = SayingThese(answers_)};
  // Measured once for all modes of a target and a drafter.
  if (!contestants_.empty() && contestants_.back().target == contestant.target &&
      contestants_.back().drafter == contestant.drafter) {
    study.measured_with = contestants_.back().engine.get();
  }
  FT_ASSIGN_OR_RETURN(contestant.engine, OpenForStudy(contestant.target, wanted, study));
  contestants_.push_back(std::move(contestant));
  return {};
}

Result<std::vector<Generation>> Bench::RunGroup(Contestant* contestant,
                                                std::span<const std::vector<Token>> prompts,
                                                std::uint64_t first_seed, int max_tokens) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Request request;
    request.prompt = prompts[i];
    request.sampling = options_.generation.sampling;
    request.sampling.seed += first_seed + i;
    request.stop = options_.generation.stop;
    request.stop.max_tokens = max_tokens;
    if (const auto& adapters = contestant->target->adapters(); !adapters.empty()) {
      const std::size_t turn = i % adapters.size();
      request.adapter = {Int(turn), adapters[turn].scale};
    }
    if (contestant->retrieves) request.datastore = decoding_.datastore.tenant;
    request.learn = false;  // Learn does, once every mode has had its turn.
    requests.push_back(std::move(request));
  }
  GenerateHooks hooks;
  if (options_.target_delay_us > 0) {
    hooks.before_step = [delay = std::chrono::microseconds(options_.target_delay_us)] {
      std::this_thread::sleep_for(delay);
    };
  }
  FT_ASSIGN_OR_RETURN(std::vector<Generation> generations,
                      Generate(*contestant->engine, std::move(requests), options_.batch, hooks));
  FT_RETURN_IF_ERROR(CheckFiniteLogits(generations, contestant->target->source().label()));
  return generations;
}

// No mode may read the answer of another to the same prompt.
Status Bench::Learn(std::span<const std::vector<Token>> prompts,
                    std::span<const Generation> outputs) {
  if (!options_.datastore.learn) return {};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<Token> tokens = prompts[i];
    tokens.insert(tokens.end(), outputs[i].tokens.begin(), outputs[i].tokens.end());
    DatastoreFolder::Learn(*decoding_.datastore.tenant, tokens, Int(prompts[i].size()));
  }
  return decoding_.datastore.Flush();
}

Status Bench::WarmUp() {
  // Backwards: a mode that remembers earlier outputs must not have seen those that are measured.
  std::vector<std::vector<Token>> prompts;
  for (std::size_t i = 0; i < std::min(batch(), sets_.front().prompts.size()); ++i) {
    const std::vector<Token>& prompt = sets_.front().prompts[i];
    prompts.emplace_back(prompt.rbegin(), prompt.rend());
  }
  const int max_tokens = std::min(options_.generation.stop.max_tokens, kWarmUpTokens);
  for (Contestant& contestant : contestants_) {
    FT_ASSIGN_OR_RETURN(const auto ignored, RunGroup(&contestant, prompts, 0, max_tokens));
  }
  return {};
}

Result<SetResult> Bench::RunSet(const EncodedSet& set, ProgressBar* progress) {
  SetResult result{set.name, set.chat, set.too_long, {}};
  for (Contestant& contestant : contestants_) {
    result.modes.push_back(
        {.label = contestant.label, .drafter = contestant.drafter, .mode = contestant.mode});
    contestant.engine->ResetStats();
  }
  std::size_t turn = 0;
  for (std::size_t begin = 0; begin < set.prompts.size(); begin += batch(), ++turn) {
    const auto prompts =
        std::span(set.prompts).subspan(begin, std::min(batch(), set.prompts.size() - begin));
    std::vector<Generation> outputs;
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      // Every mode is first, second ... equally often, so that a drift of the machine favours none.
      const std::size_t m = (i + turn) % contestants_.size();
      progress->SetLabel(fmt::format("{}: {}", set.name, contestants_[m].label));
      const Neighbour beside(neighbour_, options_.generation.sampling.seed + turn);
      FT_ASSIGN_OR_RETURN(
          outputs, RunGroup(&contestants_[m], prompts, begin, options_.generation.stop.max_tokens));
      result.modes[m].Add(outputs);
      progress->Advance();
    }
    FT_RETURN_IF_ERROR(Learn(prompts, outputs));
  }
  for (std::size_t m = 0; m < contestants_.size(); ++m) {
    result.modes[m].engine = contestants_[m].engine->stats();
    result.modes[m].planner = contestants_[m].engine->planner_report();
    if (!context_.lossy) continue;
    FT_ASSIGN_OR_RETURN(result.modes[m].written,
                        ScoreTexts(contestants_[m].engine.get(), options_.batch,
                                   contestants_[m].target->source().label(), set, result.modes[m]));
  }
  return result;
}

Json Bench::Meta() const {
  const SamplingParams& sampling = options_.generation.sampling;
  Json meta = {
      {"version", FORETOKEN_VERSION},
      {"machine", CpuModel()},
      {"backend", target_->facts().backend},
      {"target", target_->source().label()},
      {"target_parameters", FormatCount(static_cast<double>(target_->facts().parameters))},
      {"precision", options_.model.precision},
      {"kv", options_.model.kv},
      {"weights", synthetic() ? "random" : "trained"},
      {"target_cores", FormatCores(decoding_.cores.target)},
      {"seed", sampling.seed},
      {"acceptance", context_.scripted ? "scripted" : "real"},
      {"batch", options_.batch},
      {"max_tokens", options_.generation.stop.max_tokens},
      {"stops_at_eos", !options_.generation.stop.ignore_eos},
      {"prefix_cache", options_.speculation.prefix_cache},
      {"datastore", options_.datastore.directory},
      {"learn", options_.datastore.learn},
  };
  ForEachSamplingField([&](const auto& field) {
    if (field.has_flag()) meta[field.name] = sampling.*field.member;
  });
  for (const EncodedSet& set : sets_) {
    meta["data"].push_back(fmt::format("{} ({} prompts)", set.name, set.prompts.size()));
  }
  for (const Contestant& contestant : contestants_) {
    const int knee = contestant.engine->limits().knee_rows;
    if (knee > 0) meta["knee_rows"][contestant.label] = knee;
  }
  if (options_.target_delay_us > 0) meta["target_delay_us"] = options_.target_delay_us;
  if (!neighbour_.cores.empty()) meta["neighbour"] = neighbour_.Describe();
  if (options_.scripted_answers) {
    meta["scripted_answers"] = answers_.size();
  } else if (script_) {
    meta["scripted_acceptance"] = script_->acceptance;
    meta["scripted_hit"] = script_->hit;
  }
  if (drafts()) {
    if (drafters_.empty()) meta["draft"] = options_.model.DraftLabel();
    for (const ListedDrafter& drafter : drafters_) {
      meta["drafters"][drafter.name] = drafter.mode ? drafter.name : drafter.draft;
    }
    meta["draft_cores"] = FormatCores(decoding_.cores.draft);
    meta.update(SpeculationJson(options_.speculation));
  }
  return meta;
}

Result<int> Bench::Report() const {
  const Json report = {{"kind", "bench"},
                       {"meta", Meta()},
                       {"definitions", Definitions()},
                       {"sets", SetsJson(results_, context_)}};
  std::string text = fmt::format("Target {} ({}, {}) on cores {}", target_->source().label(),
                                 options_.model.precision, target_->facts().backend,
                                 FormatCores(decoding_.cores.target));
  if (!drafters_.empty()) {
    text += fmt::format(", {} drafters on cores {}", drafters_.size(),
                        FormatCores(decoding_.cores.draft));
  } else if (options_.model.has_draft()) {
    text += fmt::format(", draft {} on cores {}", options_.model.DraftLabel(),
                        FormatCores(decoding_.cores.draft));
  }
  text += fmt::format("; temperature {:g}, batch {}\n", options_.generation.sampling.temperature,
                      options_.batch);
  text += neighbour_.Sentence();
  for (const SetResult& set : results_) text += "\n" + RenderSet(set, context_);
  FT_RETURN_IF_ERROR(WriteReport(options_.files, report, text));
  std::fflush(stdout);
  for (const std::string& sentence : SlowModes(results_, context_)) PrintWarning(sentence);
  for (const SetResult& set : results_) {
    for (const ModeResult& mode : set.modes) {
      if (!ComputeFigures(set, mode, context_).identical.value_or(true)) {
        PrintError(
            fmt::format("{} gave other tokens than ar on '{}'; `foretoken verify` shows where",
                        mode.label, set.name));
        return 1;
      }
    }
  }
  return 0;
}

Result<int> Bench::Run() {
  FT_RETURN_IF_ERROR(Load());
  FT_RETURN_IF_ERROR(EncodePrompts());
  // What engines measure before they serve is measured beside the neighbour too.
  auto beside = std::make_unique<Neighbour>(neighbour_, options_.generation.sampling.seed);
  FT_RETURN_IF_ERROR(MakeContestants());
  std::size_t runs = 0;
  for (const EncodedSet& set : sets_) {
    runs += (set.prompts.size() + batch() - 1) / batch() * contestants_.size();
  }
  {
    ProgressBar progress("Warming up", static_cast<std::int64_t>(runs));
    FT_RETURN_IF_ERROR(WarmUp());
    beside.reset();
    for (const EncodedSet& set : sets_) {
      FT_ASSIGN_OR_RETURN(results_.emplace_back(), RunSet(set, &progress));
    }
  }
  return Report();
}

}  // namespace

Result<int> RunBench(BenchOptions options) { return Bench(std::move(options)).Run(); }

}  // namespace foretoken
