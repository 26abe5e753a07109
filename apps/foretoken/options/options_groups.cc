// How the options are called and explained.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/foretoken/options/options.h"
#include "apps/foretoken/options/several_models.h"
#include "base/text/parse_number.h"

namespace foretoken {
namespace {

template <typename Values, typename NameOf>
std::vector<std::string> NamesOfValues(const Values& values, NameOf name_of) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(name_of(value));
  return names;
}

}  // namespace

void AddTargetOptions(const OptionGroup& add, const char* names, ModelOptions* options,
                      const std::string& help) {
  const AddedOption path = add(names, &options->target, "MODEL", help);
  add("--hf-repo,--hf", &options->hub_target, "NAME",
      "A model of a hub by its name (also -hf): ORG/NAME, ORG/NAME:Q4_K_M, ORG/NAME:FILE.gguf, "
      "ORG/NAME@REVISION; taken from the cache of models, or fetched into it")
      ->excludes(path);
}

void AddDraftOptions(const OptionGroup& add, ModelOptions* options, const std::string& help,
                     int most_drafts) {
  constexpr const char* kNames = "--draft,--model-draft";
  const auto take = [options](const std::vector<std::string>& drafts) {
    options->draft = drafts.front();
    options->further_drafts.assign(drafts.begin() + 1, drafts.end());
  };
  const AddedOption path = most_drafts > 1 ? add(kNames, take, "MODEL", help)
                                           : add(kNames, &options->draft, "MODEL", help);
  add("--hf-repo-draft", &options->hub_draft, "NAME", "A draft model by such a name (also -hfd)")
      ->excludes(path);
  add("--draft-vocab", &options->draft_vocab, "WHICH",
      "Let the draft propose the most frequent tokens only, so that its passes are shorter: FILE, "
      "those of a ranking that `foretoken datastore rank` has made; FILE:N, the first N of them; "
      "N, the first N of what --datastore was ranked to have");
  add("--draft-by-text", &options->draft_by_text,
      "Let the draft read and write texts in tokens of its own, whatever its vocabulary; without "
      "it only where it has too few of the target's tokens. In modes sd, ensemble and auto");
}

void AddModelOptions(CLI::App* app, ModelOptions* options, int most_drafts) {
  const OptionGroup add(app, "Models");
  AddTargetOptions(add, "-m,--target,--model", options,
                   "The target model, a Hugging Face folder or a GGUF file; the bundled one by "
                   "default");
  AddDraftAndFormatOptions(app, options, most_drafts);
}

void AddDraftAndFormatOptions(CLI::App* app, ModelOptions* options, int most_drafts) {
  const OptionGroup add(app, "Models");
  const std::string several =
      most_drafts > 1 ? ". Up to three: mode sd2 drafts with the second, sd3 with the third, "
                        "auto with any"
                      : "";
  AddDraftOptions(
      add, options,
      "The draft model (also -md), a folder or GGUF file. self:q4_0: the target in that "
      "type; self:mtp, self:medusa: its layers or heads that guess ahead; self:exit=E, "
      "self:skip=WHICH: some of its layers (exit=FOLDER: and a trained one)" +
          several,
      most_drafts);
  AddWeightsOptions(app, options);
  add("--precision", &options->precision, "P",
      "How numbers are kept and computed: bf16; f32, twice the size; portable, weights as they are "
      "stored and the same bits on every processor; auto (default): portable for quantised "
      "weights, "
      "else bf16")
      ->check(IsPrecision());
  add("--kv", &options->kv, "FORMAT",
      "How keys and values are kept, whatever the precision: bf16; f32, twice the size; q8_0, 8 "
      "bits and a scale for 32 of them, little more than half of bf16; auto (default): f32 with "
      "--precision f32, else bf16")
      ->check(IsKvFormat());
}

void AddWeightsOptions(CLI::App* app, ModelOptions* options) {
  const OptionGroup add(app, "Models");
  add("--weights", &options->weights, "TYPE",
      "Convert the target's weights as they are loaded: q8_0, q6_k, q5_k, q4_k, q4_0, bf16, f32 "
      "and the other types of `foretoken quantize`; by default they stay as they are stored");
  add("--draft-weights", &options->draft_weights, "TYPE", "The same for the draft's weights");
  add("--experts", &options->experts, "WHERE",
      "Where the weights of the target's experts are kept: memory (default); mmap, in the model's "
      "file, of which a pass reads what its tokens choose, so that the model may be larger than "
      "memory")
      ->check(OneOf({"memory", "mmap"}));
}

void AddSyntheticOptions(CLI::App* app, ModelOptions* options) {
  const OptionGroup add(app, "Models");
  add("--synthetic", &options->synthetic, "SHAPE",
      "Random weights of a named shape in place of --target, for timing: llama-135m, llama-1b ...");
  add("--draft-synthetic", &options->draft_synthetic, "SHAPE",
      "Random weights of a named shape in place of --draft: draft-12m ...");
}

void AddCoreOptions(CLI::App* app, CoreOptions* options) {
  const OptionGroup add(app, "Cores");
  add("--target-cores", &options->target, "CORES",
      "Cores of the target, like 0-3,8; by default all but the draft's");
  add("--draft-cores", &options->draft, "CORES",
      "Cores of the draft in mode ssd; by default one in eight, at least one");
  add("-t,--threads", &options->target_count, "N",
      "That many cores for the target, chosen for you; one thread runs on each")
      ->check(Between(1, 4096))
      ->excludes("--target-cores");
  add("--draft-threads,--threads-draft", &options->draft_count, "N",
      "That many cores for the draft (also -td)")
      ->check(Between(1, 4096))
      ->excludes("--draft-cores");
}

namespace {

void AddLossyOptions(const OptionGroup& add, SpeculationOptions* options) {
  const AddedOption lossy =
      add("--lossy", &options->lossy, "RULE",
          "Accept proposed tokens that the model finds likely enough, although it chose another: "
          "faster, and no longer the model's output. typical (Medusa's, by the entropy of what it "
          "says), top-k-relaxed (among its k likeliest), judge (those that a trained head finds "
          "right) or none (the default). Replies and statistics say so")
          ->check(OneOf({"none", "typical", "top-k-relaxed", "judge"}));
  LossyRule* rule = &options->lossy_rule;
  add("--lossy-epsilon", &rule->epsilon, "P",
      "typical: tokens as likely as P are always accepted (default 0.09)")
      ->check(Between(1e-6F, 1.0F))
      ->needs(lossy);
  add("--lossy-delta", &rule->delta, "D",
      "typical: so are those above D times exp(-entropy) (default 0.3)")
      ->check(Between(1e-6F, 1.0F))
      ->needs(lossy);
  add("--lossy-top-k", &rule->top_k, "K", "top-k-relaxed: among the K likeliest (default 10)")
      ->check(Between(1, 64))
      ->needs(lossy);
  add("--lossy-margin", &rule->margin, "P",
      "top-k-relaxed: and at most P less likely than the likeliest (default 0.6)")
      ->check(Between(1e-6F, 1.0F))
      ->needs(lossy);
  add("--lossy-judge", &rule->judge, "FOLDER",
      "judge: the head, as foretoken_train judge makes it for the target "
      "(docs/do/train_a_drafter.md)")
      ->needs(lossy);
  add("--lossy-approval", &rule->approval, "P",
      "judge: accept what the head finds right with more than P, from 0 to 1 (default 0.5, which "
      "is where its training has put the border)")
      ->check(Between(0.0F, 1.0F))
      ->needs(lossy);
}

}  // namespace

void AddSpeculationOptions(CLI::App* app, SpeculationOptions* options) {
  AddPlanOptions(app, &options->plan);
  const OptionGroup add(app, "Speculation");
  add("--stages", &options->stages, "LIST",
      "Of mode staged, and for auto to choose it: the drafter of the target, the one that drafts "
      "for it between its passes, and so on, as in draft,draft2,ngram (default: all drafts, then "
      "ngram)");
  add("--ensemble", &options->ensemble, "LIST",
      "Of modes ensemble and auto: whose proposals become one tree, as in draft,ngram,suffix "
      "(default: suffix, recycle, protocol and retrieval, in mode ensemble all drafts as well)");
  add("--verify", &options->verification, "HOW",
      "How proposals are checked: shared-noise (default: the same tokens in every mode) or "
      "rejection (tokens drawn from the same distribution, as in the literature)")
      ->check(OneOf({"shared-noise", "rejection"}));
  AddLossyOptions(add, options);
  add("--draft-process", &options->draft_process,
      "Run the draft of mode ssd as a process of its own over shared memory");
}

void AddContextOption(CLI::App* app, ModelOptions* options) {
  const OptionGroup add(app, "Memory");
  add("-c,--context,--ctx-size", &options->context, "N",
      "Tokens per sequence, prompt and output together; by default what is needed, at most the "
      "model's limit. A model that turns positions otherwise in short texts does so where N is "
      "short enough")
      ->check(Between(2, 1 << 24));
}

void AddMemoryOptions(CLI::App* app, ModelOptions* model, SpeculationOptions* options) {
  const OptionGroup add(app, "Memory");
  AddContextOption(app, model);
  AddDraftWindowOption(app, model);
  add("--prefix-cache,!--no-prefix-cache", &options->prefix_cache,
      options->prefix_cache
          ? "Whether prompts that begin alike share the work on their beginning (on by default)"
          : "Whether prompts that begin alike share the work on their beginning (off by default)");
}

void AddDraftWindowOption(CLI::App* app, ModelOptions* options) {
  const OptionGroup add(app, "Memory");
  add("--draft-window", &options->draft_window, "N",
      "Let the draft's attention see the last N positions, and a few of the first, only, so that "
      "its passes stay short and its keys and values few, however long the text")
      ->check(Between(1, 1 << 24));
  add("--draft-anchors", &options->draft_anchors, "S",
      "First positions that a draft with a window sees as well, which models lean on (attention "
      "sinks): 4 by default, 0 for none")
      ->check(Between(0, 1 << 24));
}

void AddPromptOptions(CLI::App* app, PromptOptions* options) {
  const OptionGroup add(app, "Prompts");
  add("--prompts", &options->files, "FILE",
      "Prompt files: JSON lines with 'prompt', 'turns[0]' or 'question', or plain text, one prompt "
      "per paragraph; built-in prompts by default");
  add("--limit", &options->limit, "N", "Use the first N prompts of each file that fit")
      ->check(Between(1, 1 << 24));
  add("--words", &options->words, "N", "Of plain text, only the first N words of each paragraph")
      ->check(Between(1, 1 << 24));
  add("--raw", &options->raw, "Never use the chat template");
}

bool SetSampling(std::string_view name, std::string_view text, SamplingParams* sampling) {
  bool set = false;
  ForEachSamplingField([&](const auto& field) {
    if (!field.has_flag() || field.flag() != name) return;
    set = ParseNumber(text, &(sampling->*field.member));
  });
  return set;
}

std::vector<std::string_view> SamplingFlags() {
  std::vector<std::string_view> flags;
  ForEachSamplingField([&flags](const auto& field) {
    if (field.has_flag()) flags.push_back(field.flag());
  });
  return flags;
}

void AddSamplingOptions(CLI::App* app, GenerationOptions* options) {
  SamplingParams* sampling = &options->sampling;
  const OptionGroup add(app, "Sampling");
  ForEachSamplingField([&](const auto& field) {
    if (!field.has_flag()) return;
    auto* value = &(sampling->*field.member);
    add(field.flags, value, field.value,
        fmt::format("{} (default {:g})", field.help, double(*value)));
  });
  add("--logit-bias", &options->logit_bias, "ID:VALUE",
      "Add VALUE to the logit of token ID, as in 42:-1.5; may be repeated")
      ->allow_extra_args(false);
  add("-s,--seed", &sampling->seed, "N",
      "Seed of the noise; the same seed gives the same text in every mode");
}

void AddStopOptions(CLI::App* app, GenerationOptions* options) {
  const OptionGroup add(app, "Stopping");
  add("-n,--max-tokens,--predict,--n-predict", &options->stop.max_tokens, "N",
      "Tokens to generate at most (default " + std::to_string(options->stop.max_tokens) + ")")
      ->check(Between(1, 1 << 24));
  add("--stop", &options->stop.stop_strings, "TEXT",
      "End before this text appears; may be repeated")
      ->allow_extra_args(false);
  add("--ignore-eos", &options->stop.ignore_eos,
      "Continue after the model's end-of-sequence token");
}

void AddModeOption(CLI::App* app, std::string* mode) {
  const OptionGroup add(app, "Speculation");
  add("--mode", mode, "MODE",
      "How to decode; the text is the same. auto (default: the fastest of the next, as it goes), "
      "ar (one token at a time), sd (a draft model proposes; sd2, sd3: the second and third "
      "--draft), ssd (it prepares proposals while the target checks), ngram (proposes what the "
      "text repeats), sssd (from a datastore too); `foretoken --help` names the others")
      ->check(OneOf(NamesOfValues(kModes, ModeName)));
}

void AddColorOption(CLI::App* app, std::string* choice) {
  const OptionGroup add(app, "Output");
  add("--color", choice, "WHEN",
      "auto (default: on terminals, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}));
}

void AddDecodingOptions(CLI::App* app, DecodingOptions* options) {
  AddModelOptions(app, &options->model, kMostDrafts);
  AddAdapterOptions(app, &options->adapters, "the text is decoded with it");
  AddModeOption(app, &options->mode);
  AddSpeculationOptions(app, &options->speculation);
  AddDatastoreOptions(app, &options->datastore);
  AddMemoryOptions(app, &options->model, &options->speculation);
  AddSamplingOptions(app, &options->generation);
  AddConstraintOptions(app, &options->constraint);
  AddStopOptions(app, &options->generation);
  AddCoreOptions(app, &options->cores);
}

}  // namespace foretoken
