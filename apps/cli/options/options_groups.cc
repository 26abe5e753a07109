// How the options are called and explained.

#include "cli/options/options.h"

namespace foretoken {

CLI::Validator OneOf(std::vector<std::string> values) {
  return CLI::IsMember(std::move(values)).description("");
}

void AddModelOptions(CLI::App* app, ModelOptions* options) {
  app->add_option("-m,--target,--model", options->target,
                  "Folder of the target model (Hugging Face layout); the bundled one by default")
      ->type_name("DIR")
      ->group("Models");
  app->add_option("--draft,--model-draft", options->draft,
                  "Folder of the draft model (also -md); needs the target's vocabulary")
      ->type_name("DIR")
      ->group("Models");
  app->add_option("--precision", options->precision,
                  "How weights and KV are stored: bf16 (default) or f32")
      ->check(OneOf({"bf16", "f32"}))
      ->type_name("P")
      ->group("Models");
}

void AddSyntheticOptions(CLI::App* app, ModelOptions* options) {
  app->add_option("--synthetic", options->synthetic,
                  "Random weights of a named shape in place of --target, for timing: llama-135m, "
                  "llama-1b ...")
      ->type_name("SHAPE")
      ->group("Models");
  app->add_option("--draft-synthetic", options->draft_synthetic,
                  "Random weights of a named shape in place of --draft: draft-12m ...")
      ->type_name("SHAPE")
      ->group("Models");
}

void AddCoreOptions(CLI::App* app, CoreOptions* options) {
  app->add_option("--target-cores", options->target,
                  "Cores of the target, like 0-3,8; by default all but the draft's")
      ->type_name("CORES")
      ->group("Cores");
  app->add_option("--draft-cores", options->draft,
                  "Cores of the draft in mode ssd; by default one in eight, at least one")
      ->type_name("CORES")
      ->group("Cores");
  app->add_option("-t,--threads", options->target_count,
                  "That many cores for the target, chosen for you; one thread runs on each")
      ->check(Between(1, 4096))
      ->type_name("N")
      ->excludes("--target-cores")
      ->group("Cores");
  app->add_option("--draft-threads,--threads-draft", options->draft_count,
                  "That many cores for the draft (also -td)")
      ->check(Between(1, 4096))
      ->type_name("N")
      ->excludes("--draft-cores")
      ->group("Cores");
}

namespace {

// The speculation cache's size and shape, and what answers for it.
void AddCacheOptions(CLI::App* app, SpeculationOptions* options) {
  const auto add = [app](const char* name, auto* value, const char* help, const char* type) {
    return app->add_option(name, *value, help)->type_name(type)->group("Speculation");
  };
  add("--fanout", &options->fanout,
      "Prepared bonus tokens per outcome node in modes ssd and auto: uniform:F (or just F; default "
      "3), F_0,..,F_K, or uniform, geometric (Theorem 12) or planned (by measured hit rates, anew "
      "as it goes; auto's default), each at the same --cache-budget",
      "SHAPE");
  add("--fanout-after-fallback", &options->fanout_after_fallback,
      "The same while a fallback's proposal is verified: F or F_0,..,F_K (default: as --fanout)",
      "SHAPE");
  add("--cache-budget", &options->cache_budget,
      "Outcomes that the speculation cache of a sequence prepares for, B, K + 1 at least (default "
      "3 (K + 1); mode auto chooses)",
      "B")
      ->check(Between(1, kMaxCacheBudget));
  add("--fallback", &options->fallback,
      "What proposes after a cache miss in modes ssd and auto: jit (the draft model, just in time; "
      "default), ngram (prompt lookup), retrieval (as mode sssd), random (random tokens), none, or "
      "auto (the fastest by measured times and rates; mode auto's default)",
      "WHAT")
      ->check(OneOf({"jit", "ngram", "retrieval", "random", "none", "auto"}));
}

}  // namespace

void AddSpeculationOptions(CLI::App* app, SpeculationOptions* options) {
  app->add_option(
         "-k,--lookahead,--draft-max,--spec-draft-n-max", options->lookahead,
         "Tokens proposed per round, K (default 6; mode auto chooses up to 12, or up to K)")
      ->check(Between(1, kMaxProposal))
      ->type_name("K")
      ->group("Speculation");
  AddCacheOptions(app, options);
  app->add_option("--speculation-length", options->speculation_length,
                  "Rows per sequence, s_q, that modes sssd, rest and trie verify, the last token "
                  "among them: a number; knee: as many as this machine computes at the price of "
                  "one, shared by the batch; or auto: those that are worth what a row costs "
                  "(default: K + 1, of --fallback retrieval auto)")
      ->type_name("N|auto|knee")
      ->group("Speculation");
  app->add_option("--tree-width", options->tree_width,
                  "Let the draft model propose trees with up to W children of a token (default 1: "
                  "chains)")
      ->check(Between(1, kMaxTreeWidth))
      ->type_name("W")
      ->group("Speculation");
  app->add_option("--tree-nodes", options->tree_nodes,
                  "Tokens of a proposed tree (default 31: with its root a pass of 32 rows)")
      ->check(Between(1, kMaxProposal))
      ->type_name("N")
      ->group("Speculation");
  app->add_option(
         "--ssd-preset", options->ssd_preset,
         "Speculate like a published parallel method, in place of the options above except "
         "--lookahead: saguaro, pearl, amusd, specbranch or swiftspec")
      ->check(OneOf({"saguaro", "pearl", "amusd", "specbranch", "swiftspec"}))
      ->type_name("NAME")
      ->excludes("--fanout", "--fanout-after-fallback", "--cache-budget", "--fallback",
                 "--tree-width", "--tree-nodes")
      ->group("Speculation");
  app->add_option("--verify", options->verification,
                  "How proposals are verified: shared-noise (default: the same tokens in every "
                  "mode) or rejection (the same distribution, as in the paper)")
      ->check(OneOf({"shared-noise", "rejection"}))
      ->type_name("HOW")
      ->group("Speculation");
  app->add_option("--saguaro-c", options->saguaro_c,
                  "With --verify rejection in mode ssd: draw the draft's F likeliest tokens C "
                  "times as often, from 0 to 1 (default 1), for more cache hits")
      ->check(Between(0.0F, 1.0F))
      ->type_name("C")
      ->group("Speculation");
  app->add_option(
         "--cache-order", options->cache_order,
         "With --verify rejection in mode ssd: prepare the bonus tokens that are likeliest "
         "under the noise that will pick one (noise, the default) or by the draft "
         "(probability, as in the paper)")
      ->check(OneOf({"noise", "probability"}))
      ->type_name("ORDER")
      ->group("Speculation");
  app->add_flag("--draft-process", options->draft_process,
                "Run the speculator of mode ssd as a process of its own over shared memory")
      ->group("Speculation");
}

void AddContextOption(CLI::App* app, SpeculationOptions* options) {
  app->add_option("-c,--context,--ctx-size", options->context,
                  "Tokens per sequence, prompt and output together; by default what is needed, at "
                  "most the model's limit")
      ->check(Between(2, 1 << 24))
      ->type_name("N")
      ->group("Memory");
}

void AddMemoryOptions(CLI::App* app, SpeculationOptions* options) {
  AddContextOption(app, options);
  app->add_flag("--prefix-cache,!--no-prefix-cache", options->prefix_cache,
                options->prefix_cache
                    ? "Whether to reuse the KV of prompts that begin alike (on by default)"
                    : "Whether to reuse the KV of prompts that begin alike (off by default)")
      ->group("Memory");
}

void AddPromptOptions(CLI::App* app, PromptOptions* options) {
  app->add_option("--prompts", options->files,
                  "Prompt files: JSON lines with 'prompt', 'turns[0]' or 'question', or plain "
                  "text, one prompt per paragraph; built-in prompts by default")
      ->type_name("FILE")
      ->group("Prompts");
  app->add_option("--limit", options->limit, "Use the first N prompts of each file that fit")
      ->check(Between(1, 1 << 24))
      ->type_name("N")
      ->group("Prompts");
  app->add_option("--words", options->words,
                  "Of plain text, only the first N words of each paragraph")
      ->check(Between(1, 1 << 24))
      ->type_name("N")
      ->group("Prompts");
  app->add_flag("--raw", options->raw, "Never use the chat template")->group("Prompts");
}

void AddSamplingOptions(CLI::App* app, GenerationOptions* options) {
  SamplingParams* sampling = &options->sampling;
  const auto add = [app](const char* names, auto* value, const char* text, const char* type) {
    return app->add_option(names, *value, text)->type_name(type)->group("Sampling");
  };
  add("--temp,--temperature", &sampling->temperature,
      options->sampling.temperature > 0 ? "Temperature (default 0.7); 0 is greedy"
                                        : "Temperature; 0, the default, is greedy",
      "T");
  add("--top-k", &sampling->top_k, "Keep the K most likely tokens; 0 keeps all", "K");
  add("--top-p", &sampling->top_p, "Keep the smallest set with this much probability", "P");
  add("--min-p", &sampling->min_p, "Keep tokens at least this likely relative to the likeliest",
      "P");
  add("--repeat-penalty,--repetition-penalty", &sampling->repetition_penalty,
      "Discourage tokens of prompt and output; 1 is off", "X");
  add("--frequency-penalty", &sampling->frequency_penalty,
      "Discourage tokens of the output, per occurrence", "X");
  add("--presence-penalty", &sampling->presence_penalty,
      "Discourage tokens of the output, once for any number of occurrences", "X");
  add("--logit-bias", &options->logit_bias,
      "Add VALUE to the logit of token ID, as in 42:-1.5; may be repeated", "ID:VALUE")
      ->allow_extra_args(false);
  add("-s,--seed", &sampling->seed,
      "Seed of the noise; the same seed gives the same text in every mode", "N");
}

void AddStopOptions(CLI::App* app, GenerationOptions* options) {
  app->add_option(
         "-n,--max-tokens,--predict,--n-predict", options->stop.max_tokens,
         "Tokens to generate at most (default " + std::to_string(options->stop.max_tokens) + ")")
      ->check(Between(1, 1 << 24))
      ->type_name("N")
      ->group("Stopping");
  app->add_option("--stop", options->stop.stop_strings,
                  "End before this text appears; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group("Stopping");
  app->add_flag("--ignore-eos", options->stop.ignore_eos,
                "Continue after the model's end-of-sequence token")
      ->group("Stopping");
}

void AddModeOption(CLI::App* app, std::string* mode) {
  app->add_option(
         "--mode", *mode,
         "ar (autoregressive), sd (speculative), ssd (speculative speculative), ngram "
         "(prompt lookup), sssd (retrieval from prompt, output and a datastore), its "
         "rivals rest and trie, or auto (the default: the fastest of ar, sd, ssd, ngram and, "
         "with a datastore, sssd, round by round)")
      ->check(OneOf({"ar", "sd", "ssd", "ngram", "sssd", "rest", "trie", "auto"}))
      ->type_name("MODE")
      ->group("Speculation");
}

void AddColorOption(CLI::App* app, ColorChoice* choice) {
  const auto choose = [choice](const std::string& name) {
    *choice = name == "always"  ? ColorChoice::kAlways
              : name == "never" ? ColorChoice::kNever
                                : ColorChoice::kAuto;
  };
  app->add_option_function<std::string>(
         "--color", choose, "auto (default: on terminals, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group("Output");
}

}  // namespace foretoken
