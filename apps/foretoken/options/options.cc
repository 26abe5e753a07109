#include "apps/foretoken/options/options.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "apps/foretoken/options/hub_models.h"
#include "apps/foretoken/options/several_models.h"
#include "base/numbers/integers.h"
#include "base/text/parse_number.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDemoTarget = "demo-target";
constexpr std::string_view kDemoDraft = "demo-draft";
constexpr std::array kDemoHeads = {"demo-eagle3", "demo-mtp", "demo-dflash"};
constexpr std::string_view kOwnDrafters[] = {"mtp", "medusa"};  // ModelSource::own_drafter

bool HoldsBundledPair(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kDemoTarget / "config.json", ignored);
}

// The folder that holds demo-target and demo-draft: FORETOKEN_MODELS, or `models` in a folder above
// the program's, or that of the source tree it was built from. Empty where there is none.
std::string BundledModels() {
  if (const char* given = std::getenv("FORETOKEN_MODELS"); given != nullptr && *given != '\0') {
    return given;
  }
  for (fs::path folder = fs::path(ExecutablePath()).parent_path();; folder = folder.parent_path()) {
    if (HoldsBundledPair(folder / "models")) return (folder / "models").string();
    if (!folder.has_relative_path()) break;
  }
  const fs::path source = fs::path(FORETOKEN_SOURCE_DIR) / "models";
  return HoldsBundledPair(source) ? source.string() : std::string();
}

CoreSet CoresWithout(const std::vector<int>& cores, const CoreSet& taken) {
  CoreSet rest;
  for (const int core : cores) {
    if (std::find(taken.begin(), taken.end(), core) == taken.end()) rest.push_back(core);
  }
  return rest;
}

Result<CoreSet> TakeCores(const CoreSet& from, int count, std::string_view option) {
  if (count > std::ssize(from)) {
    return Invalid("{} asks for {} cores, but only {} are free for it", option, count, from.size());
  }
  CoreSet taken(from.begin(), from.begin() + count);
  std::sort(taken.begin(), taken.end());
  return taken;
}

// Whether a target that decodes in `mode` leaves the draft's cores to a draft.
bool LeavesCores(Mode mode, const ModelOptions& model) {
  return mode.during() || (mode.planned() && model.has_draft());
}

// Refuses more than one of the options that name a model.
Status GiveOne(std::initializer_list<std::pair<std::string_view, const std::string*>> options) {
  std::string_view given;
  for (const auto& [option, value] : options) {
    if (value->empty()) continue;
    if (!given.empty()) {
      return Invalid("give either {} or {}, not both", given, option);
    }
    given = option;
  }
  return {};
}

// Puts where a named model lies in place of its name.
Status FindOnHub(ModelUse use, std::string* name, std::string* path, std::string* label) {
  if (name->empty()) return {};
  FT_ASSIGN_OR_RETURN(ModelName named, ParseModelName(*name));
  named.use = use;
  FT_ASSIGN_OR_RETURN(*path, FindHubModel(named, HubQuestion::kWhereNeeded));
  *label = named.Text();
  name->clear();
  return {};
}

}  // namespace

std::string ExecutablePath() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

Status ModelOptions::ResolveDefaults(const std::string& datastore) {
  FT_RETURN_IF_ERROR(
      GiveOne({{"--target", &target}, {"--hf-repo", &hub_target}, {"--synthetic", &synthetic}}));
  FT_RETURN_IF_ERROR(GiveOne({{"--draft", &draft},
                              {"--hf-repo-draft", &hub_draft},
                              {"--draft-synthetic", &draft_synthetic}}));
  FT_RETURN_IF_ERROR(FindOnHub(ModelUse::kTarget, &hub_target, &target, &target_name));
  FT_RETURN_IF_ERROR(FindOnHub(ModelUse::kDraft, &hub_draft, &draft, &draft_name));
  FT_RETURN_IF_ERROR(FillInBundled());
  FT_RETURN_IF_ERROR(ResolveFurtherDrafts(datastore));
  if (draft.starts_with(kSelf)) {
    FT_RETURN_IF_ERROR(FillInSelf());
  } else if (!draft.empty() && draft.find('/') == std::string::npos && !fs::exists(draft)) {
    // One that is bundled may be named alone.
    const fs::path bundled = fs::path(BundledModels()) / draft;
    if (fs::exists(bundled / "config.json")) draft = bundled.string();
  }
  for (const bool of_draft : {false, true}) {
    if ((of_draft ? draft_weights : weights).empty()) continue;
    if ((of_draft ? draft : target).empty()) {
      return Invalid("--{0}weights converts the weights of a {1} in files, and there is none",
                     of_draft ? "draft-" : "", of_draft ? "draft" : "target");
    }
  }
  if (draft_window.has_value() && !has_draft()) {
    return InvalidInput("--draft-window is of a draft's attention, and there is no draft");
  }
  if (draft_anchors.has_value() && !draft_window.has_value()) {
    return InvalidInput(
        "--draft-anchors is what a draft sees besides its window, and without --draft-window it "
        "sees everything");
  }
  if (draft_by_text && !has_draft()) {
    return InvalidInput("--draft-by-text is about how a draft reads and writes, and there is none");
  }
  return FillInDraftVocabulary(datastore);
}

std::optional<DraftWindow> ModelOptions::SeenByDraft() const {
  if (!draft_window.has_value()) return std::nullopt;
  DraftWindow window{.positions = *draft_window};
  if (draft_anchors.has_value()) window.anchors = *draft_anchors;
  return window;
}

Status ModelOptions::ResolveFurtherDrafts(const std::string& datastore) {
  if (further_sources.size() == further_drafts.size()) return {};
  if (further_drafts.size() + 1 > kDraftModels.size()) {
    return Invalid("--draft names {} drafts, and a model has {} at most", further_drafts.size() + 1,
                   kDraftModels.size());
  }
  further_sources.clear();
  for (const std::string& further : further_drafts) {
    ModelOptions alone = *this;
    alone.draft = further;
    alone.draft_name.clear();
    alone.further_drafts.clear();
    FT_RETURN_IF_ERROR(alone.ResolveDefaults(datastore));
    further_sources.push_back(alone.DraftSource());
  }
  return {};
}

std::vector<std::string> ModelOptions::DraftLabels() const {
  std::vector<std::string> labels;
  if (has_draft()) labels.push_back(DraftSource().label());
  for (const ModelSource& further : further_sources) labels.push_back(further.label());
  return labels;
}

Status ModelOptions::CheckDraftOf(Mode mode) const {
  if (!NeedsDraft(mode) || HasDraftOf(mode)) return {};
  const std::size_t drafts = DraftIndex(mode.drafter) + 1;
  return InvalidInput(
      drafts == 1
          ? fmt::format("mode {} needs a draft model; name its folder or GGUF file with --draft",
                        ModeName(mode))
          : fmt::format("mode {} needs {} draft models; name each with a --draft of its own",
                        ModeName(mode), drafts));
}

std::string ModelOptions::DraftLabel() const {
  return fmt::format("{}", fmt::join(DraftLabels(), ", "));
}

Status ModelOptions::FillInDraftVocabulary(const std::string& datastore) {
  if (draft_vocab.empty()) return {};
  if (!has_draft()) {
    return InvalidInput("--draft-vocab is of a draft's tokens, and there is no draft");
  }
  draft_vocabulary = {};
  std::string file = draft_vocab;
  const std::size_t colon = draft_vocab.rfind(':');
  const std::string_view number =
      std::string_view(draft_vocab).substr(colon == std::string::npos ? 0 : colon + 1);
  if (int most = 0; ParseNumber(number, &most)) {
    if (most < 1) {
      return Invalid("--draft-vocab {}: the draft must be left at least one token", draft_vocab);
    }
    draft_vocabulary.most = most;
    file.resize(colon == std::string::npos ? 0 : colon);
  }
  if (file.empty() && draft_synthetic.empty()) {
    std::error_code ignored;
    if (datastore.empty() || !std::filesystem::exists(RankingPath(datastore), ignored)) {
      return Invalid(
          "--draft-vocab {}: which tokens are the most frequent is not known; `foretoken datastore "
          "rank -d DIR` finds it out for --datastore DIR, and `foretoken datastore rank FILE... "
          "--output RANKING` for --draft-vocab RANKING:N",
          draft_vocab);
    }
    file = RankingPath(datastore).string();
  }
  draft_vocabulary.ranking = file;
  return {};
}

std::filesystem::path RankingPath(const std::filesystem::path& datastore) {
  return datastore / "token-ranking.txt";
}

Status ModelOptions::FillInSelf() {
  const std::string type = draft.substr(kSelf.size());
  const bool runs_layers = type.starts_with("exit=") || type.starts_with("skip=");
  if (runs_layers ||
      (std::ranges::find(kOwnDrafters, type) != std::end(kOwnDrafters) && !target.empty())) {
    draft = target;
    draft_name = (target_name.empty() ? TargetSource().label() : target_name) + ":" + type;
    own_drafter = type;
    if (!runs_layers) return {};
    draft_synthetic = synthetic;  // Where there are no files.
    if (draft_weights.empty()) draft_weights = weights;
    return {};
  }
  if (type.empty() || type.find('=') != std::string::npos || !draft_weights.empty() ||
      target.empty()) {
    return Invalid(
        "the draft '{}' stands for the target with other weights: write self:TYPE, as "
        "self:q4_0, without --draft-weights, and beside a target in files; self:mtp "
        "or self:medusa for the layers or heads in its files that guess further "
        "tokens; or self:exit=E or self:skip=WHICH for some of its own layers",
        draft);
  }
  draft = target;
  draft_name = target_name;
  draft_weights = type;
  return {};
}

Status ModelOptions::FillInBundled() {
  if (!target.empty() || !synthetic.empty()) return {};
  const std::string models = BundledModels();
  if (models.empty()) {
    return InvalidInput(
        "the bundled models were not found; name a model's folder or GGUF file with --target, or "
        "set "
        "FORETOKEN_MODELS to the folder that holds demo-target and demo-draft");
  }
  target = (fs::path(models) / kDemoTarget).string();
  if (!has_draft()) draft = (fs::path(models) / kDemoDraft).string();
  return {};
}

std::vector<std::string> BundledHeads() {
  std::vector<std::string> heads;
  const fs::path models = BundledModels();
  for (const char* name : kDemoHeads) {
    if (fs::exists(models / name / "config.json")) heads.emplace_back(name);
  }
  return heads;
}

Result<Cores> ResolveCores(const CoreOptions& options) {
  const std::vector<int> available = AvailablePhysicalCores();
  Cores cores;
  if (!options.target.empty()) {
    FT_ASSIGN_OR_RETURN(cores.target, ParseCores(options.target));
  }
  if (!options.draft.empty()) {
    FT_ASSIGN_OR_RETURN(cores.draft, ParseCores(options.draft));
  }
  if (cores.target.empty() && options.target_count) {
    FT_ASSIGN_OR_RETURN(cores.target, TakeCores(CoresWithout(available, cores.draft),
                                                *options.target_count, "--threads"));
  }
  if (cores.draft.empty() && options.draft_count) {
    FT_ASSIGN_OR_RETURN(cores.draft, TakeCores(CoresWithout(available, cores.target),
                                               *options.draft_count, "--draft-threads"));
  }

  // What is still open is shared out of what is left; with nothing left, both use the same cores.
  const CoreSplit split = DefaultCoreSplit(available);
  if (cores.target.empty() && cores.draft.empty()) cores.draft = split.draft;
  if (cores.target.empty()) {
    cores.target = CoresWithout(available, cores.draft);
    if (cores.target.empty()) cores.target = cores.draft;
  } else if (cores.draft.empty()) {
    const CoreSet left = CoresWithout(available, cores.target);
    cores.draft = left.empty() ? CoreSet{cores.target.back()}
                               : CoreSet(left.begin(),
                                         left.begin() + std::min(left.size(), split.draft.size()));
  }
  std::sort(cores.target.begin(), cores.target.end());
  std::sort(cores.draft.begin(), cores.draft.end());
  std::set_union(cores.target.begin(), cores.target.end(), cores.draft.begin(), cores.draft.end(),
                 std::back_inserter(cores.all));
  return cores;
}

Result<std::pair<Token, float>> ParseLogitBias(std::string_view text) {
  const std::size_t colon = text.find_first_of(":=");
  Token token = -1;
  float value = 0;
  if (colon == std::string_view::npos || !ParseNumber(text.substr(0, colon), &token) ||
      !ParseNumber(text.substr(colon + 1), &value)) {
    return Invalid("--logit-bias '{}' is not of the form ID:VALUE, as in 42:-1.5", text);
  }
  return std::pair(token, value);
}

Status GenerationOptions::Finish() {
  for (const std::string& text : logit_bias) {
    FT_ASSIGN_OR_RETURN(const auto bias, ParseLogitBias(text));
    sampling.logit_bias.push_back(bias);
  }
  logit_bias.clear();
  return {};
}

Result<std::vector<Mode>> ParseModes(std::string_view text) {
  std::vector<Mode> modes;
  for (const std::string& name : SplitList(text)) {
    FT_ASSIGN_OR_RETURN(const Mode mode, ParseMode(name));
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) modes.push_back(mode);
  }
  if (modes.empty()) return InvalidInput("--modes names no mode; write it like ar,sd,ssd");
  return modes;
}

LoadProgress LoadingBar(const ModelSource& source) {
  return [label = fmt::format("Loading {}", source.label()), bar = std::shared_ptr<ProgressBar>()](
             std::size_t packed, std::size_t all) mutable {
    if (bar == nullptr) bar = std::make_shared<ProgressBar>(label, 0);
    bar->Show(packed, all);
    if (packed == all) bar.reset();
  };
}

namespace {

Result<std::shared_ptr<LanguageModel>> LoadWith(LoadProgress progress, const ModelOptions& model,
                                                const AdapterOptions& adapters,
                                                const CoreSet& cores) {
  FT_ASSIGN_OR_RETURN(auto loaded,
                      LanguageModel::Load({.source = model.TargetSource(),
                                           .cores = cores,
                                           .precision = ParsePrecision(model.precision),
                                           .kv = ParseKvFormat(model.kv),
                                           .progress = std::move(progress),
                                           .adapters = adapters.Sources()}));
  for (const std::string& sentence : loaded->facts().not_used) {
    PrintWarning(fmt::format("{}: {}", loaded->source().label(), sentence));
  }
  return loaded;
}

}  // namespace

Result<std::shared_ptr<LanguageModel>> LoadTarget(const ModelOptions& model, const CoreSet& cores,
                                                  const AdapterOptions& adapters) {
  return LoadWith(LoadingBar(model.TargetSource()), model, adapters, cores);
}

const CoreSet& TargetCores(const DecodingOptions& options, const Cores& from,
                           std::optional<Mode> decoding_mode) {
  const bool alone =
      decoding_mode && !options.cores.given() && !LeavesCores(*decoding_mode, options.model);
  return alone ? from.all : from.target;
}

Result<Decoding> LoadDecoding(DecodingOptions* options, std::optional<Mode> decoding_mode,
                              LoadProgress progress) {
  Decoding decoding;
  FT_ASSIGN_OR_RETURN(decoding.cores, ResolveCores(options->cores));
  FT_ASSIGN_OR_RETURN(decoding.target,
                      LoadWith(std::move(progress), options->model, options->adapters,
                               TargetCores(*options, decoding.cores, decoding_mode)));
  FT_ASSIGN_OR_RETURN(decoding.datastore, OpenChosen(options->datastore, *decoding.target));
  // With a budget of thoughts the answer to each prompt has a grammar of its own (KeepToBudget).
  if (options->budget.tokens < 0) {
    FT_RETURN_IF_ERROR(
        Constrain(options->constraint, *decoding.target, &options->generation.sampling));
  }
  return decoding;
}

Result<Decoding> DecodingOptions::Load(std::optional<Mode> decoding_mode) {
  return LoadDecoding(this, decoding_mode, LoadingBar(model.TargetSource()));
}

Result<int> ChooseContext(const ModelOptions& model, const LanguageModel& target, int wanted) {
  const int limit = target.facts().max_context;
  if (model.context && *model.context > limit) {
    return Invalid("--context {} is more than the model's limit of {} tokens", *model.context,
                   limit);
  }
  if (model.context) return *model.context;
  return wanted > 0 ? std::min(wanted, limit) : limit;
}

Result<EngineOptions> DecodingOptions::EngineFor(std::span<const Mode> modes, const Cores& at,
                                                 int batch, int context) const {
  FT_ASSIGN_OR_RETURN(EngineOptions options, speculation.ToEngineOptions(batch, context));
  options.modes.assign(modes.begin(), modes.end());
  options.draft = {.source = model.DraftSource(),
                   .cores = at.draft,
                   .precision = ParsePrecision(model.precision),
                   .kv = ParseKvFormat(model.kv),
                   .window = model.SeenByDraft(),
                   .by_text = model.draft_by_text ? std::optional(true) : std::nullopt,
                   .process = speculation.draft_process,
                   .executable = ExecutablePath(),
                   .progress = LoadingBar(model.DraftSource())};
  for (const ModelSource& source : model.further_sources) {
    DraftOptions& further = options.further_drafts.emplace_back(options.draft);
    further.source = source;
    further.progress = LoadingBar(source);
  }
  options.keep_times = true;
  options.log = [](std::string_view warning) { PrintWarning(std::string(warning)); };
  return options;
}

Result<std::unique_ptr<Engine>> DecodingOptions::OpenEngine(Mode decoding_mode,
                                                            const Decoding& with,
                                                            int context) const {
  FT_ASSIGN_OR_RETURN(const EngineOptions wanted,
                      EngineFor(datastore.ModesFor(decoding_mode), with.cores,
                                /*batch=*/1, context));
  return Engine::Open(with.target, wanted);
}

Result<Mode> DecodingOptions::Choose() {
  FT_RETURN_IF_ERROR(generation.Finish());
  FT_RETURN_IF_ERROR(model.ResolveDefaults(datastore.directory));
  FT_ASSIGN_OR_RETURN(model.chat_template, chat_template.Read());
  const bool fixed =
      speculation.plan.tree_width.value_or(1) > 1 || speculation.plan.ssd_preset.has_value();
  Mode chosen = fixed ? Mode::kSsd : Mode::kAuto;
  if (!mode.empty()) {
    FT_ASSIGN_OR_RETURN(chosen, ParseMode(mode));
  }
  if (const Status draft = model.CheckDraftOf(chosen); !draft.ok()) {
    return Invalid("{}, or use --mode ar", draft.error().message);
  }
  return chosen;
}

Status DecodingOptions::CheckFor(std::span<const Mode> modes) const {
  FT_RETURN_IF_ERROR(speculation.CheckFor(modes));
  return datastore.Check(modes);
}

Status CheckPromptFits(std::size_t prompt_tokens, int context) {
  if (prompt_tokens < Size(context)) return {};
  return Invalid(
      "the prompt has {} tokens, but the context holds {} with at least one of output; shorten it",
      prompt_tokens, context);
}

}  // namespace foretoken
