#include "apps/foretoken/serve/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/foretoken/options/several_models.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// The size of a folder's weights, or of a file and, where it is a part of a split one, of the
// others.
std::uint64_t WeightFileBytes(const fs::path& model) {
  constexpr std::string_view kFirstPart = "-00001-of-";
  std::error_code ignored;
  const bool folder = fs::is_directory(model, ignored);
  const std::string file = model.filename().string();
  const std::size_t part = file.find(kFirstPart);
  if (!folder && part == file.npos) {
    const auto bytes = fs::file_size(model, ignored);
    return ignored ? 0 : bytes;
  }
  const std::string prefix = folder ? "" : file.substr(0, part) + "-";
  std::uint64_t bytes = 0;
  for (fs::directory_iterator at(folder ? model : model.parent_path(), ignored), end;
       !ignored && at != end; at.increment(ignored)) {
    const fs::path& path = at->path();
    const bool weights = path.extension() == (folder ? ".safetensors" : ".gguf");
    if (!weights || !path.filename().string().starts_with(prefix)) continue;
    const auto size = fs::file_size(path, ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

// Refuses what is not there, which would else show when somebody asks for the model.
Status CheckIsThere(const std::string& model) {
  std::error_code ignored;
  if (model.empty() || fs::exists(model, ignored)) return {};
  return Invalid("there is no folder or file '{}'", model);
}

// Shows on a terminal how far a model is, and lets others compute meanwhile.
LoadProgress PausingBar(const ModelSource& source, const std::function<void()>& pause) {
  return [bar = LoadingBar(source), pause](std::size_t packed, std::size_t all) {
    bar(packed, all);
    pause();
  };
}

// Which of the modes decides about cores.
Mode DecodingMode(const std::vector<Mode>& modes) {
  return std::ranges::count(modes, Mode::kSsd) > 0 ? Mode::kSsd : modes.front();
}

// Runs on the engine's thread.
Result<server::ServedModel> LoadServed(ServedOptions options, const std::vector<Mode>& modes,
                                       const std::function<void()>& pause) {
  FT_ASSIGN_OR_RETURN(
      Decoding decoding,
      LoadDecoding(&options, DecodingMode(modes), PausingBar(options.model.TargetSource(), pause)));
  const LanguageModel& target = *decoding.target;
  FT_RETURN_IF_ERROR(
      ValidateSamplingParams(options.generation.sampling, target.facts().vocabulary));
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options.model, target, kDefaultContext));
  server::ServedModel served;
  served.model = decoding.target;
  served.datastore = std::move(decoding.datastore.folder);
  served.tenant = decoding.datastore.tenant;
  FT_ASSIGN_OR_RETURN(EngineOptions wanted,
                      options.EngineFor(modes, decoding.cores, options.batch, context));
  wanted.draft.progress = PausingBar(options.model.DraftSource(), pause);
  for (DraftOptions& further : wanted.further_drafts) {
    further.progress = PausingBar(further.source, pause);
  }
  served.drafts = options.model.DraftLabels();
  wanted.max_waiting = options.queue;
  wanted.max_lookahead = options.max_lookahead;
  if (!options.learn_draft.empty()) {
    wanted.learning = {.folder = options.learn_draft,
                       .capture_bytes = Size(options.learn_draft_mb) << 20};
  }
  FT_ASSIGN_OR_RETURN(served.engine, options.open(served.model, wanted));
  return served;
}

}  // namespace

Result<std::vector<Mode>> ModesToOffer(const ServedOptions& options, Mode first) {
  std::vector<Mode> modes = {first};
  std::vector<Mode> others = {Mode::kAuto};
  for (const Mode mode : kModes) {
    const DrafterInfo& info = InfoOf(mode.drafter);
    // Mode auto brings those along that are made of others.
    if (mode.drafts() && (info.baseline || info.needs == DrafterNeeds::kDrafters)) continue;
    const bool served =
        info.needs == DrafterNeeds::kText ||
        (NeedsDraft(mode) ? options.model.HasDraftOf(mode) : options.datastore.given());
    if (!mode.drafts() || served) others.push_back(mode);
  }
  if (!options.modes.empty()) {
    FT_ASSIGN_OR_RETURN(others, ParseModes(options.modes));
  }
  for (const Mode mode : others) {
    FT_RETURN_IF_ERROR(options.model.CheckDraftOf(mode));
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) modes.push_back(mode);
  }
  return modes;
}

Result<server::ModelSpec> SpecOf(ServedOptions options, std::string id) {
  FT_ASSIGN_OR_RETURN(const Mode first, options.Choose());
  FT_ASSIGN_OR_RETURN(const std::vector<Mode> modes, ModesToOffer(options, first));
  FT_RETURN_IF_ERROR(options.CheckFor(modes));
  if (!options.key_namespace.empty()) options.datastore.tenant = options.key_namespace;
  FT_RETURN_IF_ERROR(CheckIsThere(options.model.target));
  FT_RETURN_IF_ERROR(CheckIsThere(options.model.draft));
  for (const ModelSource& further : options.model.further_sources) {
    FT_RETURN_IF_ERROR(CheckIsThere(further.path));
  }
  if (!options.learn_draft.empty() && std::ranges::none_of(modes, NeedsDraft)) {
    return InvalidInput(
        "--learn-draft trains a draft that is in use: give one with --draft, and a mode that has "
        "it");
  }
  FT_ASSIGN_OR_RETURN(const Cores cores, ResolveCores(options.cores));
  SamplingParams& sampling = options.generation.sampling;
  FT_RETURN_IF_ERROR(options.model_sampling.AddTo(options.model.target, &sampling));
  server::ModelSpec spec;
  spec.id = id.empty() ? options.model.TargetSource().label() : std::move(id);
  spec.aliases = options.aliases;
  for (const AdapterSource& adapter : options.adapters.Sources()) {
    spec.aliases.push_back(fmt::format("{}:{}", spec.id, adapter.name));
  }
  spec.cores = TargetCores(options, cores, DecodingMode(modes));
  spec.bytes = WeightFileBytes(options.model.target);
  if (!options.model.draft.empty()) spec.bytes += WeightFileBytes(options.model.draft);
  for (const ModelSource& further : options.model.further_sources) {
    spec.bytes += WeightFileBytes(further.path);
  }
  spec.source = options.model.TargetSource();
  spec.context = options.model.context.value_or(kDefaultContext);
  spec.options = options.service;
  spec.options.lossy = options.speculation.is_lossy();
  spec.options.defaults.sampling = sampling;
  spec.options.defaults.template_variables = options.chat_template.variables;
  spec.options.defaults.budget = options.budget;
  spec.load = [options = std::move(options), modes](const std::function<void()>& pause) {
    return LoadServed(options, modes, pause);
  };
  return spec;
}

void AddServedOptions(CLI::App* app, ServedOptions* options) {
  const OptionGroup add_load(app, "Load");
  add_load("--batch,--parallel", &options->batch, "N",
           "Sequences decoded together (also -np; default 16)")
      ->check(Between(1, 256));
  add_load("--queue", &options->queue, "N",
           "Sequences that may wait; more are answered 429 (default 256)")
      ->check(Between(0, 65536));
  add_load("--max-prompt", &options->service.max_prompt_tokens, "N",
           "Tokens of a prompt at most; by default what the context holds")
      ->check(Between(1, 1 << 24));
  AddDraftAndFormatOptions(app, &options->model, kMostDrafts);
  AddAdapterOptions(app, &options->adapters, "requests name the one that they want");
  AddChatTemplateOptions(app, &options->chat_template);
  AddReasoningOptions(app, &options->budget);
  std::vector<std::string> forms = {"auto"};
  for (const std::string_view name : CallFormNames()) forms.emplace_back(name);
  const OptionGroup add_chat(app, "Chat");
  add_chat("--tool-format", &options->model.tool_format, "NAME",
           "How the model writes calls of tools: auto (default: as its chat template tells), or "
           "a form by its name (docs/do/tools.md)")
      ->check(OneOf(std::move(forms)));
  AddModeOption(app, &options->mode);
  const OptionGroup add(app, "Speculation");
  add("--modes", &options->modes, "LIST",
      "Modes that requests may choose; by default all that the models allow");
  AddSpeculationOptions(app, &options->speculation);
  add("--max-lookahead", &options->max_lookahead, "K",
      "The most tokens per round that a request may ask for (default 16)")
      ->check(Between(1, kMaxProposal));
  add("--learn-draft", &options->learn_draft, "DIR",
      "Write what is decoded, and the target's states, for a trainer to DIR/captures, and draft "
      "with what it puts into DIR/candidates where that is better on texts held back "
      "(docs/do/train_a_drafter.md); requests whose field \"datastore\" has \"learn\": false stay "
      "out");
  add("--learn-draft-mb", &options->learn_draft_mb, "N",
      "What the captures may take on disk, the oldest going first (default 1024)")
      ->check(Between(4, 1 << 20));
  AddDatastoreOptions(app, &options->datastore);
  AddMemoryOptions(app, &options->model, &options->speculation);
  AddSamplingOptions(app, &options->generation);
  AddModelSamplingOption(app, &options->model_sampling);
  AddCoreOptions(app, &options->cores);
}

void NoteGiven(CLI::App* app, ServedOptions* options) {
  NoteGiven(app, &options->model_sampling);
  const AddedOption seed = FindOption(app, "--seed");
  if (seed.has_value()) options->service.random_seed = false;
}

}  // namespace foretoken
