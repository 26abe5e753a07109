#include "apps/foretoken/serve/serve_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "apps/foretoken/common/generation.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/hub_models.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/serve/served_models.h"
#include "apps/foretoken/server/access/loopback.h"
#include "apps/foretoken/server/server.h"
#include "base/files/private_files.h"

namespace foretoken {
namespace {

struct ServeOptions {
  ModelChoice choice;
  ServedOptions each;  ///< What holds for every model.
  double idle_seconds = 0;
  std::optional<double> models_gb;
  bool allow_pull = false;
  double pull_gb = 100;
  std::string api_key;
  std::string api_key_file;
  std::string reasoning_format = "auto";
  double body_mb = 4;
  int event_interval_ms = 5;
  server::ServerOptions server;
};

// The keys that requests must bring, by either option.
Result<server::ApiKeys> KeysFor(const ServeOptions& options, bool given) {
  const std::string& tenant = options.each.datastore.tenant;
  if (!options.api_key_file.empty() && !tenant.empty()) {
    return InvalidInput(
        "--namespace is for a server without --api-key-file, whose lines say which namespaces "
        "belong to a key: leave one of the two out");
  }
  if (!options.api_key_file.empty()) return server::ApiKeys::Read(options.api_key_file);
  server::ApiKeys keys;
  if (given) {
    FT_ASSIGN_OR_RETURN(server::ApiKey key, server::ApiKeys::Make("key", options.api_key));
    key.namespaces = {tenant.empty() ? std::string(DatastoreFolder::kDefault) : tenant};
    keys.Add(std::move(key));
  }
  return keys;
}

// For any thread started from now on too: sigwait then finds them.
sigset_t BlockSignals(bool reads_keys) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Has the keys read again where a file has them. Else a terminal that closes ends the server as
  // SIGTERM does, but for one that nohup has started.
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN || reads_keys) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void ReadKeysAgain(const std::string& file, server::Server* server) {
  Result<server::ApiKeys> keys = server::ApiKeys::Read(file);
  if (!keys.ok()) return PrintWarning(keys.error().message + "; the keys stay as they were");
  server->ReplaceKeys(std::move(*keys));
  fmt::print(stderr, "foretoken: the keys of '{}' are asked for from now on\n", file);
}

// Waits for the end; until then it does what other signals ask for.
void AwaitEnd(const sigset_t& signals, const ServeOptions& options, server::Server* server) {
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGHUP || options.api_key_file.empty()) return;
    ReadKeysAgain(options.api_key_file, server);
  }
}

// Nothing where requests used other modes too: the times are of all together.
DraftingCosts CostsOfMode(const server::ServerTotals& totals, Mode mode) {
  for (const Mode other : kModes) {
    if (other != mode && totals.modes[other].rounds > 0) return {};
  }
  return {.rounds = totals.modes[mode].rounds,
          .tokens = totals.modes[mode].tokens,
          .proposed = totals.draft_tokens,
          .accepted = totals.accepted_tokens,
          .target = totals.target_seconds,
          .wait = totals.wait_seconds,
          .host = totals.host_seconds};
}

// The models that are served, none loaded yet.
Result<std::vector<server::ModelSpec>> SpecsOf(const std::vector<NamedModel>& models) {
  std::vector<server::ModelSpec> specs;
  for (const NamedModel& model : models) {
    Result<server::ModelSpec> spec = SpecOf(model.options, model.id);
    if (!spec.ok()) {
      const Error& error = spec.error();
      if (models.size() == 1) return error;
      return Error{error.code, fmt::format("model '{}': {}", model.id, error.message)};
    }
    specs.push_back(std::move(*spec));
  }
  FT_RETURN_IF_ERROR(CheckDiffer(models, specs));
  return specs;
}

// How a model is fetched that a client asks for, and served: as one of several, with what was said
// for all of them. Drafts, adapters, a template and what is learned are of the models that were
// named.
server::ServerOptions::Fetch FetchFor(const ServedOptions& each) {
  ServedOptions common = each;
  ModelOptions model;
  model.context = each.model.context;
  model.precision = each.model.precision;
  model.kv = each.model.kv;
  model.weights = each.model.weights;
  model.experts = each.model.experts;
  common.model = model;
  common.aliases.clear();
  common.modes.clear();
  common.mode = ServedOptions().mode;
  common.adapters = {};
  common.chat_template = {};
  common.datastore = {};
  common.learn_draft.clear();
  return [common](const std::string& name,
                  const server::PullHooks& hooks) -> Result<server::ModelSpec> {
    ServedOptions options = common;
    FT_ASSIGN_OR_RETURN(options.model.target,
                        FetchHubModel(name, {hooks.cancelled, hooks.progress}));
    return SpecOf(std::move(options), name);
  };
}

std::string AddressOf(const server::HttpOptions& http, int port) {
  const bool six = http.host.find(':') != std::string::npos;  // IPv6, which URLs have in brackets.
  return fmt::format("{}://{}:{}", http.tls_certificate.empty() ? "http" : "https",
                     six ? fmt::format("[{}]", http.host) : http.host, port);
}

// Says what is served and where, once that can be used: one model is loaded then.
Status Announce(const ServeOptions& options, server::Server* server) {
  server::ModelRegistry& models = server->models();
  const std::string address = AddressOf(options.server.http, server->port());
  if (models.size() == 1) {
    FT_ASSIGN_OR_RETURN(const server::ModelRegistry::Lease served, models.AwaitLoaded(0));
    const Engine& engine = *served->model().engine;
    std::vector<std::string_view> names;
    for (const Mode mode : server::OfferedModes(engine)) names.push_back(ModeName(mode));
    fmt::print("Serving {} at {} (modes {}; context {} tokens)\n", served->id(), address,
               fmt::join(names, ", "), engine.limits().context);
  } else {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < models.size(); ++i) names.push_back(models.spec(i).id);
    fmt::print("Serving {} models at {} (each is loaded when it is asked for: {})\n", models.size(),
               address, fmt::join(names, ", "));
  }
  std::fflush(stdout);
  return {};
}

void WarnOfStrangers(const ServeOptions& options, const std::vector<NamedModel>& models) {
  if (!server::IsLoopback(options.server.http.host) && options.server.keys.empty()) {
    PrintWarning("anyone who reaches this address can use the server; --api-key asks for a key");
    if (options.allow_pull) {
      PrintWarning(
          "... and can have models fetched to this machine's disk, which --allow-pull lets");
    }
  }
  const bool learn = std::ranges::any_of(
      models, [](const NamedModel& model) { return model.options.datastore.learn; });
  for (const NamedModel& model : models) {
    if (model.options.learn_draft.empty()) continue;
    PrintWarning(fmt::format("what clients send and are answered is written to {}/captures",
                             model.options.learn_draft));
  }
  if (learn && options.server.keys.empty()) {
    PrintWarning(
        "every client reads what the outputs of others taught; --api-key-file gives each its own "
        "namespace");
  }
}

// What lets others in should be its owner's alone.
void WarnOfOpenKeys(const ServeOptions& options) {
  for (const std::string& file : {options.api_key_file, options.server.http.tls_key}) {
    if (file.empty() || !IsReadableByAll(file)) continue;
    PrintWarning(fmt::format(
        "every account of this machine may read the keys in '{0}': chmod 600 '{0}' keeps them",
        file));
  }
}

// How the draft has served where there is one model.
void WarnOfDraft(const server::ModelRegistry& models) {
  const server::ModelRegistry::Lease served = models.size() == 1 ? models.Peek(0) : nullptr;
  if (served == nullptr) return;
  const Mode first = *served->model().engine->plan().mode;
  const std::string verdict =
      DraftVerdict(first, CostsOfMode(served->engine().stats().Published(), first));
  if (!verdict.empty()) PrintWarning(verdict);
}

Result<int> Serve(ServeOptions options, bool key_given) {
  server::ServerOptions& settings = options.server;
  FT_ASSIGN_OR_RETURN(settings.keys, KeysFor(options, key_given));
  if (!settings.keys.empty()) options.each.key_namespace = settings.keys.front().namespaces.front();
  settings.version = FORETOKEN_VERSION;
  settings.http.limits.body_bytes = static_cast<std::size_t>(options.body_mb * 1e6);
  if (options.models_gb) {
    settings.models.bytes = static_cast<std::uint64_t>(*options.models_gb * 1e9);
  }
  settings.models.idle = std::chrono::milliseconds(std::llround(options.idle_seconds * 1e3));
  options.each.service.defaults.parts_reasoning = options.reasoning_format != "none";
  options.each.service.event_interval = std::chrono::milliseconds(options.event_interval_ms);
  FT_ASSIGN_OR_RETURN(const std::vector<NamedModel> models,
                      ChooseModels(options.choice, options.each));
  FT_ASSIGN_OR_RETURN(std::vector<server::ModelSpec> specs, SpecsOf(models));

  if (options.allow_pull) {
    settings.fetch = FetchFor(options.each);
    settings.pull_bytes = static_cast<std::uint64_t>(options.pull_gb * 1e9);
  }
  if (const std::string& slots = options.each.service.slot_folder; !slots.empty()) {
    FT_RETURN_IF_ERROR(MakePrivateFolders(slots));
  }
  const sigset_t signals = BlockSignals(!options.api_key_file.empty());
  AvailableCores();  // Notes them before a thread is pinned.
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<server::Server> server,
                      server::Server::Start(settings, std::move(specs)));
  FT_RETURN_IF_ERROR(Announce(options, server.get()));
  WarnOfStrangers(options, models);
  WarnOfOpenKeys(options);
  AwaitEnd(signals, options, server.get());
  fmt::print(stderr, "foretoken: ending; running requests have {} seconds (again: end at once)\n",
             settings.shutdown_seconds);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // A second one ends the program.
  server->Shutdown();
  WarnOfDraft(server->models());
  return 0;
}

void AddServedModelsOptions(CLI::App* command, ServeOptions* options) {
  const OptionGroup add(command, "Models");
  add("-m,--target,--model", &options->choice.targets, "[NAME=]MODEL",
      "A model, a Hugging Face folder or a GGUF file, and how clients name it; the bundled one by "
      "default. May be repeated: each model is then loaded when a request names it")
      ->allow_extra_args(false);
  add("--hf-repo,--hf", &options->choice.hub_targets, "[NAME=]NAME",
      "The same by a hub's name (also -hf): ORG/NAME, ORG/NAME:Q4_K_M, ORG/NAME:FILE.gguf, "
      "ORG/NAME@REVISION; taken from the cache of models, or fetched into it")
      ->allow_extra_args(false);
  add("--models,--models-dir,--models-preset", &options->choice.models, "DIR|FILE",
      "Serve all models of a folder, or those that a file describes: sections [NAME] with options "
      "like target, draft, context, chat-template. In a folder that file is models.toml");
  add("--alias", &options->each.aliases, "NAME",
      "How clients name the model; by default its folder's or GGUF file's name. With several "
      "models ALIAS=NAME, which may be repeated")
      ->allow_extra_args(false);
  add("--max-models,--models-max", &options->server.models.loaded, "N",
      "Models loaded at once at most; the one that was used the longest ago makes room (default: "
      "what fits)")
      ->check(Between(1, 1 << 20));
  add("--model-memory", &options->models_gb, "GB",
      "The same by gigabytes: files, keys and values of all that are loaded (default: the memory "
      "that is free). One model is loaded whatever it takes")
      ->check(Between(0.001, 1e6));
  add("--allow-pull", &options->allow_pull,
      "Let clients have models fetched from the hub by their names, through Ollama's /api/pull, "
      "which are then served (docs/do/run_a_server.md says what that means)");
  add("--pull-limit", &options->pull_gb, "GB",
      "Gigabytes that such a model may have at most (default 100)")
      ->check(Between(0.001, 1e6));
  add("--model-idle,--sleep-idle-seconds", &options->idle_seconds, "S",
      "Unload a model that nobody has used for so many seconds (default: never)")
      ->check(Between(0.1, 1e8));
}

void AddListenOptions(CLI::App* command, ServeOptions* options) {
  server::ServerOptions* server = &options->server;
  const OptionGroup add(command, "Server");
  add("--host", &server->http.host, "ADDRESS",
      "Address to listen at (default 127.0.0.1: this machine only)");
  add("--port", &server->http.port, "PORT", "Port (default 8080); 0 takes any free one")
      ->check(Between(0, 65535));
  add("--api-key", &options->api_key, "KEY", "Answer only requests that bring this key");
  add("--api-key-file", &options->api_key_file, "FILE",
      "The same with the keys of a file: on each line a key, or a name and a key, then perhaps "
      "namespaces=a,b (of the datastore) and limit=N (sequences under way)")
      ->excludes("--api-key");
  add("--ssl-cert", &server->http.tls_certificate, "FILE",
      "Speak TLS (https) with this certificate, in PEM form with what it is signed by");
  add("--ssl-key", &server->http.tls_key, "FILE", "The certificate's private key, in PEM form");
  add("--allow-host", &server->allow_hosts, "NAME",
      "Another name by which this machine's clients call a server that listens to it alone");
  add("--cors", &server->cors, "ORIGIN",
      "Let pages of this origin call the API, as in http://localhost:3000");
}

void AddLogOptions(CLI::App* command, ServeOptions* options) {
  const OptionGroup add(command, "Log");
  add("-v,--verbose", &options->server.verbose,
      "A line on standard error for each request: time, client, status, milliseconds, model, "
      "tokens, acceptance");
  add("--log-file", &options->server.log_file, "FILE", "The same lines at the end of a file");
}

void AddRequestOptions(CLI::App* command, ServeOptions* options) {
  const OptionGroup add(command, "Requests");
  add("--reasoning-format", &options->reasoning_format, "FORM",
      "What a model thinks is apart from what it says (auto, the default, or deepseek), or stays "
      "in it with its marks (none)")
      ->check(OneOf({"auto", "none", "deepseek"}));
  add("--reranking,--rerank", &options->each.service.reranks,
      "Answer /v1/rerank: the model was trained to say yes or no to a query and a document, as "
      "Qwen3-Reranker was (docs/look_up/api.md)");
  add("--slot-save-path", &options->each.service.slot_folder, "DIR",
      "Let clients save the keys and values of a text to files of this folder, and take them back "
      "in another run, by llama.cpp's /slots/ID?action=save, restore and erase "
      "(docs/look_up/api.md)");
  add("--strict-fields", &options->each.service.defaults.strict_fields,
      "Refuse fields that the server does not know; else they are named in the reply's header "
      "X-Foretoken-Ignored, where what it knows and leaves out always is");
}

void AddLoadOptions(CLI::App* command, ServeOptions* options) {
  server::ServerOptions* server = &options->server;
  const OptionGroup add(command, "Load");
  add("--client-limit", &options->each.service.client_limit, "N",
      "Sequences that one client may have under way (default: half of all places; all of them "
      "where only this machine calls)")
      ->check(Between(1, 1 << 17));
  add("--max-request-tokens", &options->each.service.max_request_tokens, "N",
      "Tokens of one request at most: prompts and outputs of all its choices (default 262144)")
      ->check(Between(std::int64_t{1}, std::int64_t{1} << 40));
  add("--connections", &server->http.limits.connections, "N",
      "Connections open at once; more are answered 503 (default 8192)")
      ->check(Between(1, 1 << 20));
  add("--max-body", &options->body_mb, "MB", "Megabytes of a request at most (default 4)")
      ->check(Between(0.001, 1024.0));
  add("--request-timeout", &options->each.service.request_seconds, "S",
      "Seconds that a request may take, waiting included (default 600)")
      ->check(Between(0.01, 1e6));
  add("--shutdown-seconds", &server->shutdown_seconds, "S",
      "Seconds that running requests have after SIGTERM (default 30)")
      ->check(Between(0.0, 1e6));
  add("--stall-seconds", &options->each.service.stall_seconds, "S",
      "/health fails after so long without progress (default 30)")
      ->check(Between(0.01, 1e6));
  add("--event-interval", &options->event_interval_ms, "MS",
      "Milliseconds between two writes of a stream at least; what comes in between goes out "
      "together (default 5)")
      ->check(Between(0, 1000));
}

}  // namespace

void AddServeCommand(CLI::App* app, CommandBody* chosen) {
  AddServeCommand(app, chosen, &Engine::Open);
}

void AddServeCommand(CLI::App* app, CommandBody* chosen, EngineOpener open) {
  CLI::App* command =
      AddCommand(app, "serve", "Serve models by an OpenAI-compatible HTTP API, with a page");
  auto options = std::make_shared<ServeOptions>();
  options->each.generation.sampling.temperature = 1;
  options->each.open = std::move(open);
  AddListenOptions(command, options.get());
  AddLoadOptions(command, options.get());
  AddRequestOptions(command, options.get());
  AddLogOptions(command, options.get());
  AddServedModelsOptions(command, options.get());
  AddServedOptions(command, &options->each);
  SetFooter(
      command,
      "Sampling options are what requests get that do not say otherwise; the temperature is 1, as "
      "OpenAI's, and the seed a random one unless given here. GET /props tells the limits.");
  WhenChosen(command, chosen, [options, command] {
    NoteGiven(command, &options->each);
    const AddedOption key = FindOption(command, "--api-key");
    return Serve(*options, key.has_value());
  });
}

}  // namespace foretoken
