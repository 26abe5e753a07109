// How the options are called and explained.

#include "cli/options/options.h"

namespace foretoken {
namespace {

template <typename Values, typename NameOf>
std::vector<std::string> NamesOf(const Values& values, NameOf name_of) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(name_of(value));
  return names;
}

}  // namespace

CLI::Validator OneOf(std::vector<std::string> values) {
  return CLI::IsMember(std::move(values)).description("");
}

void AddModelOptions(CLI::App* app, ModelOptions* options) {
  const OptionGroup add(app, "Models");
  add("-m,--target,--model", &options->target, "DIR",
      "Folder of the target model (Hugging Face layout); the bundled one by default");
  add("--draft,--model-draft", &options->draft, "DIR",
      "Folder of the draft model (also -md); needs the target's vocabulary");
  add("--precision", &options->precision, "P",
      "How weights and KV are stored: bf16 (default) or f32")
      ->check(OneOf({"bf16", "f32"}));
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

// The speculation cache's size and shape, and what answers for it.
void AddCacheOptions(CLI::App* app, SpeculationOptions* options) {
  const OptionGroup add(app, "Speculation");
  add("--fanout", &options->fanout, "SHAPE",
      "Prepared bonus tokens per outcome node in modes ssd and auto: uniform:F (or just F; default "
      "3), F_0,..,F_K, or uniform, geometric (Theorem 12) or planned (by measured hit rates, anew "
      "as it goes; auto's default), each at the same --cache-budget");
  add("--fanout-after-fallback", &options->fanout_after_fallback, "SHAPE",
      "The same while a fallback's proposal is verified: F or F_0,..,F_K (default: as --fanout)");
  add("--cache-budget", &options->cache_budget, "B",
      "Outcomes that the speculation cache of a sequence prepares for, B, K + 1 at least (default "
      "3 (K + 1); mode auto chooses)")
      ->check(Between(1, kMaxCacheBudget));
  add("--fallback", &options->fallback, "WHAT",
      "What proposes after a cache miss in modes ssd and auto: jit (the draft model, just in time; "
      "default), ngram (prompt lookup), retrieval (as mode sssd), random (random tokens), none, or "
      "auto (the fastest by measured times and rates; mode auto's default)")
      ->check(OneOf(NamesOf(kFallbacks, FallbackName)));
}

}  // namespace

void AddSpeculationOptions(CLI::App* app, SpeculationOptions* options) {
  const OptionGroup add(app, "Speculation");
  add("-k,--lookahead,--draft-max,--spec-draft-n-max", &options->lookahead, "K",
      "Tokens proposed per round, K (default 6; mode auto chooses up to 12, or up to K)")
      ->check(Between(1, kMaxProposal));
  AddCacheOptions(app, options);
  add("--speculation-length", &options->speculation_length, "N|auto|knee",
      "Rows per sequence, s_q, that modes sssd, rest and trie verify, the last token among them: a "
      "number; knee: as many as this machine computes at the price of one, shared by the batch; or "
      "auto: those that are worth what a row costs (default: K + 1, of --fallback retrieval auto)");
  add("--tree-width", &options->tree_width, "W",
      "Let the draft model propose trees with up to W children of a token (default 1: chains)")
      ->check(Between(1, kMaxTreeWidth));
  add("--tree-nodes", &options->tree_nodes, "N",
      "Tokens of a proposed tree (default 31: with its root a pass of 32 rows)")
      ->check(Between(1, kMaxProposal));
  add("--ssd-preset", &options->ssd_preset, "NAME",
      "Speculate like a published parallel method, in place of the options above except "
      "--lookahead: saguaro, pearl, amusd, specbranch or swiftspec")
      ->check(OneOf({"saguaro", "pearl", "amusd", "specbranch", "swiftspec"}))
      ->excludes("--fanout", "--fanout-after-fallback", "--cache-budget", "--fallback",
                 "--tree-width", "--tree-nodes");
  add("--verify", &options->verification, "HOW",
      "How proposals are verified: shared-noise (default: the same tokens in every mode) or "
      "rejection (the same distribution, as in the paper)")
      ->check(OneOf({"shared-noise", "rejection"}));
  add("--saguaro-c", &options->saguaro_c, "C",
      "With --verify rejection in mode ssd: draw the draft's F likeliest tokens C times as often, "
      "from 0 to 1 (default 1), for more cache hits")
      ->check(Between(0.0F, 1.0F));
  add("--cache-order", &options->cache_order, "ORDER",
      "With --verify rejection in mode ssd: prepare the bonus tokens that are likeliest under the "
      "noise that will pick one (noise, the default) or by the draft (probability, as in the "
      "paper)")
      ->check(OneOf({"noise", "probability"}));
  add("--draft-process", &options->draft_process,
      "Run the speculator of mode ssd as a process of its own over shared memory");
}

void AddContextOption(CLI::App* app, SpeculationOptions* options) {
  const OptionGroup add(app, "Memory");
  add("-c,--context,--ctx-size", &options->context, "N",
      "Tokens per sequence, prompt and output together; by default what is needed, at most the "
      "model's limit")
      ->check(Between(2, 1 << 24));
}

void AddMemoryOptions(CLI::App* app, SpeculationOptions* options) {
  const OptionGroup add(app, "Memory");
  AddContextOption(app, options);
  add("--prefix-cache,!--no-prefix-cache", &options->prefix_cache,
      options->prefix_cache
          ? "Whether to reuse the KV of prompts that begin alike (on by default)"
          : "Whether to reuse the KV of prompts that begin alike (off by default)");
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

void AddSamplingOptions(CLI::App* app, GenerationOptions* options) {
  SamplingParams* sampling = &options->sampling;
  const OptionGroup add(app, "Sampling");
  add("--temp,--temperature", &sampling->temperature, "T",
      options->sampling.temperature > 0 ? "Temperature (default 0.7); 0 is greedy"
                                        : "Temperature; 0, the default, is greedy");
  add("--top-k", &sampling->top_k, "K", "Keep the K most likely tokens; 0 keeps all");
  add("--top-p", &sampling->top_p, "P", "Keep the smallest set with this much probability");
  add("--min-p", &sampling->min_p, "P",
      "Keep tokens at least this likely relative to the likeliest");
  add("--repeat-penalty,--repetition-penalty", &sampling->repetition_penalty, "X",
      "Discourage tokens of prompt and output; 1 is off");
  add("--frequency-penalty", &sampling->frequency_penalty, "X",
      "Discourage tokens of the output, per occurrence");
  add("--presence-penalty", &sampling->presence_penalty, "X",
      "Discourage tokens of the output, once for any number of occurrences");
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
      "ar (autoregressive), sd (speculative), ssd (speculative speculative), ngram (prompt "
      "lookup), sssd (retrieval from prompt, output and a datastore), its rivals rest and trie, or "
      "auto (the default: the fastest of ar, sd, ssd, ngram and, with a datastore, sssd, round by "
      "round)")
      ->check(OneOf(NamesOf(kModes, ModeName)));
}

void AddColorOption(CLI::App* app, std::string* choice) {
  const OptionGroup add(app, "Output");
  add("--color", choice, "WHEN",
      "auto (default: on terminals, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}));
}

void AddDecodingOptions(CLI::App* app, DecodingOptions* options) {
  AddModelOptions(app, &options->model);
  AddModeOption(app, &options->mode);
  AddSpeculationOptions(app, &options->speculation);
  AddDatastoreOptions(app, &options->datastore);
  AddMemoryOptions(app, &options->speculation);
  AddSamplingOptions(app, &options->generation);
  AddConstraintOptions(app, &options->constraint);
  AddStopOptions(app, &options->generation);
  AddCoreOptions(app, &options->cores);
}

}  // namespace foretoken
