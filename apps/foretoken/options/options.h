#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/common/command_line.h"
#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/terminal.h"
#include "base/result.h"
#include "base/threads/cores.h"
#include "foretoken/chat_format.h"
#include "foretoken/datastore.h"
#include "foretoken/engine.h"
#include "foretoken/request.h"

namespace foretoken {

/// What the name of a draft that the target is itself begins with: "self:mtp".
inline constexpr std::string_view kSelf = "self:";

/// What chats are written by.
struct ChatTemplateOptions {
  std::string source;     ///< A file, or the name of a built-in template; empty: the model's own.
  std::string variables;  ///< A JSON object; empty: none.

  /// The template; empty where the model's own is to be used. An error where it cannot be read, or
  /// the variables are none.
  Result<std::string> Read() const;
};

/// `--chat-template` and `--chat-template-kwargs`.
void AddChatTemplateOptions(CLI::App* app, ChatTemplateOptions* options);

/// `--reasoning-budget` and `--reasoning-budget-message`.
void AddReasoningOptions(CLI::App* app, ReasoningBudget* budget);

/// Drafts that an engine has at most.
inline constexpr int kMostDrafts = kDraftModels.size();

/// Which models, and how they are stored.
struct ModelOptions {
  std::string target;  ///< Empty: the bundled one.
  std::string draft;   ///< Empty: the bundled one where the target is the bundled one.
  /// The second and third draft, where a command takes several, as `draft` is written.
  std::vector<std::string> further_drafts;
  std::string hub_target;  ///< In place of `target`: its name on a hub.
  std::string hub_draft;   ///< In place of `draft`: its name on a hub.
  std::string synthetic;   ///< bench only: a named shape with random weights.
  std::string draft_synthetic;
  std::string weights;  ///< What the target's weights are converted to; empty: nothing.
  /// The type that the draft's weights are converted to; empty: none.
  std::string draft_weights;
  std::string draft_vocab;         ///< "FILE", "FILE:N" or "N"; empty: all that the draft can say.
  std::string experts = "memory";  ///< Where the target's are kept: there, or "mmap".
  std::string precision = "auto";
  std::string kv = "auto";           ///< How keys and values are kept, the draft's too.
  std::string chat_template;         ///< Jinja, in place of the target's own; empty: that one.
  std::string tool_format = "auto";  ///< ModelSource::call_form; "auto": as its template tells.
  std::optional<int> draft_window;   ///< The positions of DraftOptions::window, for every draft.
  std::optional<int> draft_anchors;  ///< The anchors of DraftOptions::window, for every draft.
  bool draft_by_text = false;        ///< DraftOptions::by_text of every draft.
  std::optional<int> context;  ///< Positions that both are used for; none: what the command needs.

  /// Finds models that were named, fetching what is missing; fills in the bundled pair where
  /// nothing was chosen, and the target for a draft "self:TYPE", "self:mtp", "self:medusa",
  /// "self:exit=E" or "self:skip=WHICH"; an error where the former is not to be found. The N most
  /// frequent tokens are those that the folder `datastore`, where there is one, was ranked to have.
  /// May be called again.
  Status ResolveDefaults(const std::string& datastore = {});
  ModelSource TargetSource() const {
    return {target,        synthetic, weights,         target_name,
            chat_template, context,   experts_place(), call_form()};
  }
  ModelSource DraftSource() const {
    return {.path = draft,
            .synthetic = draft_synthetic,
            .weights = draft_weights,
            .name = draft_name,
            .context = context,
            .own_drafter = own_drafter,
            .draft_vocabulary = draft_vocabulary};
  }
  /// How reports call the drafts, each and all together; none: nothing.
  std::vector<std::string> DraftLabels() const;
  std::string DraftLabel() const;
  ExpertsPlace experts_place() const {
    return experts == "mmap" ? ExpertsPlace::kFile : ExpertsPlace::kMemory;
  }
  /// What `draft_window` and `draft_anchors` make.
  std::optional<DraftWindow> SeenByDraft() const;
  std::string call_form() const { return tool_format == "auto" ? std::string() : tool_format; }
  bool has_draft() const {
    return !draft.empty() || !hub_draft.empty() || !draft_synthetic.empty();
  }
  /// Whether the draft is there that `mode` drafts with, which it must need.
  bool HasDraftOf(Mode mode) const {
    return has_draft() && DraftIndex(mode.drafter) <= further_drafts.size();
  }
  /// Refuses a mode whose draft is not there.
  Status CheckDraftOf(Mode mode) const;
  /// Whether any model was named.
  bool given() const { return has_draft() || !target.empty() || !hub_target.empty(); }

  // How reports call what was named.
  std::string target_name;
  std::string draft_name;
  std::string own_drafter;                   ///< ModelSource::own_drafter: "mtp" of "self:mtp".
  DraftVocabulary draft_vocabulary;          ///< What became of `draft_vocab`.
  std::vector<ModelSource> further_sources;  ///< What became of `further_drafts`.

 private:
  Status FillInBundled();
  Status FillInSelf();
  Status FillInDraftVocabulary(const std::string& datastore);
  // Each as the only draft of these options would be.
  Status ResolveFurtherDrafts(const std::string& datastore);
};

/// Where `foretoken datastore rank` puts the ranking of a datastore's tokens.
std::filesystem::path RankingPath(const std::filesystem::path& datastore);

/// Low-rank adapters that the target is loaded with.
struct AdapterOptions {
  std::vector<std::string> adapters;  ///< "PATH" or "NAME=PATH"
  float scale = 1;                    ///< AdapterSource::scale of all.

  std::vector<AdapterSource> Sources() const;
};

/// `--lora` and `--lora-scale`. `help` ends the former's: what becomes of the adapters.
void AddAdapterOptions(CLI::App* app, AdapterOptions* options, const std::string& help);

/// The one adapter that a command decodes with that takes no other; none where none was given.
Result<AdapterUse> TheAdapter(const LanguageModel& target);

/// Which cores do what.
struct CoreOptions {
  std::string target;  ///< As ParseCores reads them; empty: from the machine.
  std::string draft;
  std::optional<int> target_count;  ///< `-t`: that many cores instead of a list.
  std::optional<int> draft_count;   ///< `-td`: the same for the draft.

  bool given() const { return !target.empty() || target_count; }
};

/// What the options and the machine make of it. Must be found out before any thread is pinned.
struct Cores {
  CoreSet target;
  CoreSet draft;
  CoreSet all;  ///< Both together: what AR and SD may use in place of SSD.
};
Result<Cores> ResolveCores(const CoreOptions& options);

/// The drafters beside the bundled pair that read the bundled target's states: names that `--draft`
/// takes.
std::vector<std::string> BundledHeads();

/// Speculation, batching and KV. Where nothing is given, modes differ: sd and ssd take the engine's
/// defaults, mode auto chooses.
struct SpeculationOptions {
  static constexpr int kDefaultLookahead = 6;

  PlanOptions plan;      ///< But for its mode.
  std::string stages;    ///< Names of drafters; empty: as EngineOptions says.
  std::string ensemble;  ///< Names of drafters; empty: as EngineOptions says.
  bool draft_process = false;
  std::string verification = "shared-noise";
  std::string lossy = "none";  ///< With numbers that count for one rule each.
  LossyRule lossy_rule;        ///< Its kind is what `lossy` says.
  bool prefix_cache = true;

  /// The most tokens that a round may propose, in any mode.
  int MostLookahead() const;
  /// Refuses what says nothing to any of these modes, or is not for one of them.
  Status CheckFor(std::span<const Mode> modes) const;
  bool is_lossy() const { return lossy != "none"; }
  Result<EngineOptions> ToEngineOptions(int batch, int max_context) const;

 private:
  Result<LossyRule> ParseLossyRule() const;
};

/// "3" or "uniform:3", "uniform", "geometric", "planned", or F_0,..,F_K.
Result<Fanout> ParseFanout(std::string_view text);

/// The drafters of "draft,ngram", in that order; `option` names it in errors.
Result<std::vector<DrafterId>> ParseDrafterIds(std::string_view option, std::string_view text);

/// Sets the field of sampling_fields.inc whose flag is `--NAME`; false where there is none, or
/// `text` is no number.
bool SetSampling(std::string_view name, std::string_view text, SamplingParams* sampling);
/// The names that SetSampling knows.
std::vector<std::string_view> SamplingFlags();

/// Sampling options and where a generation ends.
struct GenerationOptions {
  SamplingParams sampling;
  StopRules stop;
  std::vector<std::string> logit_bias;  ///< "ID:VALUE"

  /// Reads logit_bias into `sampling` and validates; call once after parsing.
  Status Finish();
};

/// What the output must match, at most one of them.
struct ConstraintOptions {
  std::string grammar_file;
  std::string json_schema;      ///< A file, or the schema itself, which begins with '{'.
  std::string response_format;  ///< "json"

  bool given() const {
    return !grammar_file.empty() || !json_schema.empty() || !response_format.empty();
  }
};

void AddConstraintOptions(CLI::App* app, ConstraintOptions* options);

/// Sets the constraint of `sampling` for `target`, which must have a tokenizer. Does nothing where
/// none was given.
Status Constrain(const ConstraintOptions& options, const LanguageModel& target,
                 SamplingParams* sampling);

/// Holds the thoughts before the answer to `prompt`, a chat's, to a budget; what else the answer
/// must match then stands behind them. Does nothing where there is no budget.
Status KeepToBudget(const ReasoningBudget& budget, const ConstraintOptions& constraint,
                    const LanguageModel& target, std::span<const Token> prompt,
                    SamplingParams* sampling);

/// Which datastore retrieval looks in, and what enters it.
struct DatastoreChoice {
  std::string directory;  ///< Empty: none.
  std::string tenant;     ///< Empty: the default one.
  bool learn = false;

  bool given() const { return !directory.empty(); }
  /// Refuses options that need a datastore where none is given; so does mode rest.
  Status Check(std::span<const Mode> modes) const;
  /// What an engine of this mode is to offer: for auto the retrieving mode too, where there is a
  /// datastore to choose it for.
  std::vector<Mode> ModesFor(Mode mode) const;
};

/// A datastore with the namespace that was chosen. Outlives the engine that reads it.
struct OpenDatastore {
  std::unique_ptr<DatastoreFolder> folder;  ///< Null: there is none.
  std::shared_ptr<DatastoreTenant> tenant;  ///< Null: likewise.

  /// Returns when everything learned is on disk.
  Status Flush() const { return folder == nullptr ? Status() : folder->Flush(); }
};

/// `--datastore`, `--learn`, `--namespace`.
void AddDatastoreOptions(CLI::App* app, DatastoreChoice* choice);

/// Opens what was chosen, for the target's tokenizer.
Result<OpenDatastore> OpenChosen(const DatastoreChoice& choice, const LanguageModel& target);

/// `-md` may be given several times where there may be more than one draft.
void AddModelOptions(CLI::App* app, ModelOptions* options, int most_drafts = 1);
/// `-m` (by these names) and `-hf`, two ways to say which target.
void AddTargetOptions(const OptionGroup& add, const char* names, ModelOptions* options,
                      const std::string& help);
/// `-md` and `-hfd`, likewise the draft.
void AddDraftOptions(const OptionGroup& add, ModelOptions* options, const std::string& help,
                     int most_drafts = 1);
/// `--weights`, `--draft-weights` and `--experts`, which are among them.
void AddWeightsOptions(CLI::App* app, ModelOptions* options);
/// `--synthetic` and `--draft-synthetic`.
void AddSyntheticOptions(CLI::App* app, ModelOptions* options);
void AddCoreOptions(CLI::App* app, CoreOptions* options);
void AddSpeculationOptions(CLI::App* app, SpeculationOptions* options);
/// The flags of PlanOptions, which are among them.
void AddPlanOptions(CLI::App* app, PlanOptions* plan);
void AddContextOption(CLI::App* app, ModelOptions* options);
/// `--draft-window` and `--draft-anchors`.
void AddDraftWindowOption(CLI::App* app, ModelOptions* options);
/// `--draft-window`, `--draft-anchors`, `--context` and `--prefix-cache`.
void AddMemoryOptions(CLI::App* app, ModelOptions* model, SpeculationOptions* options);
void AddPromptOptions(CLI::App* app, PromptOptions* options);
void AddSamplingOptions(CLI::App* app, GenerationOptions* options);
/// `--stop`, `--ignore-eos`, `-n`.
void AddStopOptions(CLI::App* app, GenerationOptions* options);
void AddModeOption(CLI::App* app, std::string* mode);
void AddColorOption(CLI::App* app, std::string* choice);

/// "ID:VALUE" or "ID=VALUE".
Result<std::pair<Token, float>> ParseLogitBias(std::string_view text);

/// The running program's path; empty where the system does not tell.
std::string ExecutablePath();

/// The modes of "ar,sd,ssd", in that order, without repeats.
Result<std::vector<Mode>> ParseModes(std::string_view text);

/// Shows on a terminal how far a model is while it loads.
LoadProgress LoadingBar(const ModelSource& source);

/// Loads the target onto `cores`, showing so on a terminal.
Result<std::shared_ptr<LanguageModel>> LoadTarget(const ModelOptions& model, const CoreSet& cores,
                                                  const AdapterOptions& adapters = {});

/// Tokens that are enough for conversations.
inline constexpr int kDefaultContext = 8192;

/// The context limit: `--context`, or the model's. `wanted` tokens are enough where the user did
/// not say; 0 wants all.
Result<int> ChooseContext(const ModelOptions& model, const LanguageModel& target, int wanted);

/// What a command decodes with, in place.
struct Decoding {
  Cores cores;
  std::shared_ptr<LanguageModel> target;
  OpenDatastore datastore;
};

/// What commands that decode have in common.
struct DecodingOptions {
  ModelOptions model;
  AdapterOptions adapters;
  CoreOptions cores;
  SpeculationOptions speculation;
  GenerationOptions generation;
  ConstraintOptions constraint;
  DatastoreChoice datastore;
  ChatTemplateOptions chat_template;
  ReasoningBudget budget;  ///< How much a chat's answer may think.
  std::string mode;

  /// The mode the user named; else auto, or ssd for what auto does not choose among (trees,
  /// presets). Fills in the default models, finishes the generation's options and reads the chat
  /// template.
  Result<Mode> Choose();
  /// Refuses what says nothing to these modes, or is not for one of them.
  Status CheckFor(std::span<const Mode> modes) const;
  /// Loads the target, opens the datastore and sets the constraint, unless thoughts have a budget:
  /// KeepToBudget then sets it. The target's cores are its own, or the draft's too where
  /// `decoding_mode` never leaves these to a draft and the user named none.
  Result<Decoding> Load(std::optional<Mode> decoding_mode = {});
  /// What the options make of an engine that offers `modes`.
  Result<EngineOptions> EngineFor(std::span<const Mode> modes, const Cores& at, int batch,
                                  int context) const;
  /// Opens an engine that decodes one sequence at a time in this mode.
  Result<std::unique_ptr<Engine>> OpenEngine(Mode decoding_mode, const Decoding& with,
                                             int context) const;
};

/// All of them, in the order of the help.
void AddDecodingOptions(CLI::App* app, DecodingOptions* options);

/// Refuses a prompt that leaves no room for output in `context`.
Status CheckPromptFits(std::size_t prompt_tokens, int context);

}  // namespace foretoken
