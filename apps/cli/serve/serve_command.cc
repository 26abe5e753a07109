#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <memory>

#include "cli/common/commands.h"
#include "cli/common/generation.h"
#include "cli/common/terminal.h"
#include "cli/options/options.h"
#include "server/access/loopback.h"
#include "server/server.h"

namespace foretoken {
namespace {

struct ServeOptions : DecodingOptions {
  std::string modes;
  std::string alias;
  std::string api_key;
  std::string api_key_file;
  std::string reasoning_format = "auto";
  int batch = 16;
  int queue = 256;
  int max_lookahead = 16;
  double body_mb = 4;
  int event_interval_ms = 5;
  server::ServerOptions server;
};

// The modes to offer, that of requests which name none first.
Result<std::vector<Mode>> ModesToOffer(const ServeOptions& options, Mode first) {
  std::vector<Mode> modes = {first};
  std::vector<Mode> others = {Mode::kAuto};
  for (const Mode mode : kModes) {
    const DrafterInfo& info = InfoOf(mode.drafter);
    const bool served = info.needs == DrafterNeeds::kText ||
                        (NeedsDraft(mode) ? options.model.has_draft() : options.datastore.given());
    if (!mode.drafts() || (served && !info.baseline)) others.push_back(mode);
  }
  if (!options.modes.empty()) {
    FT_ASSIGN_OR_RETURN(others, ParseModes(options.modes));
  }
  for (const Mode mode : others) {
    if (NeedsDraft(mode) && !options.model.has_draft()) {
      return InvalidInput(
          fmt::format("mode {} needs a draft model; name its folder or GGUF file with --draft",
                      ModeName(mode)));
    }
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) modes.push_back(mode);
  }
  return modes;
}

// The keys that requests must bring, by either option.
Result<server::ApiKeys> KeysFor(const ServeOptions& options, bool given) {
  const std::string& tenant = options.datastore.tenant;
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

// Runs on the server's engine thread.
Result<server::ServedModel> LoadServed(ServeOptions options, const std::vector<Mode>& modes) {
  const bool speculates = std::find(modes.begin(), modes.end(), Mode::kSsd) != modes.end();
  const Mode mode = speculates ? Mode::kSsd : modes.front();
  FT_ASSIGN_OR_RETURN(Decoding decoding, options.Load(mode));
  const LanguageModel& target = *decoding.target;
  FT_RETURN_IF_ERROR(
      ValidateSamplingParams(options.generation.sampling, target.facts().vocabulary));
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options.model, target, kDefaultContext));
  server::ServedModel served;
  served.model = decoding.target;
  served.datastore = std::move(decoding.datastore.folder);
  served.tenant = decoding.datastore.tenant;
  served.loaded = std::time(nullptr);
  served.id = options.alias.empty() ? target.source().label() : options.alias;
  FT_ASSIGN_OR_RETURN(EngineOptions wanted,
                      options.EngineFor(modes, decoding.cores, options.batch, context));
  wanted.max_waiting = options.queue;
  wanted.max_lookahead = options.max_lookahead;
  FT_ASSIGN_OR_RETURN(served.engine, Engine::Open(served.model, wanted));
  return served;
}

// For any thread started from now on too: sigwait then finds them.
sigset_t BlockEndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Nothing where requests used other modes too: the times are of all together.
DraftingCosts CostsOf(const server::ServerTotals& totals, Mode mode) {
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

Result<int> Serve(ServeOptions options, bool key_given) {
  FT_ASSIGN_OR_RETURN(const Mode first, options.Choose());
  FT_ASSIGN_OR_RETURN(const std::vector<Mode> modes, ModesToOffer(options, first));
  FT_RETURN_IF_ERROR(options.CheckFor(modes));
  server::ServerOptions& settings = options.server;
  FT_ASSIGN_OR_RETURN(settings.keys, KeysFor(options, key_given));
  if (!settings.keys.empty()) options.datastore.tenant = settings.keys.front().namespaces.front();
  settings.version = FORETOKEN_VERSION;
  settings.http.limits.body_bytes = static_cast<std::size_t>(options.body_mb * 1e6);
  settings.service.defaults.sampling = options.generation.sampling;
  settings.service.defaults.template_variables = options.chat_template.variables;
  settings.service.defaults.parts_reasoning = options.reasoning_format != "none";
  settings.service.event_interval = std::chrono::milliseconds(options.event_interval_ms);

  const sigset_t signals = BlockEndingSignals();
  AvailableCores();  // Notes them before a thread is pinned.
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<server::Server> server,
                      server::Server::Start(settings, [&] { return LoadServed(options, modes); }));
  FT_RETURN_IF_ERROR(server->AwaitLoaded());
  std::vector<std::string_view> names;
  for (const Mode mode : modes) names.push_back(ModeName(mode));
  const bool tls = !settings.http.tls_certificate.empty();
  const std::string& host = settings.http.host;
  const bool six = host.find(':') != std::string::npos;  // IPv6, which URLs have in brackets.
  fmt::print("Serving {} at {}://{}:{} (modes {}; context {} tokens)\n", server->model().id,
             tls ? "https" : "http", six ? fmt::format("[{}]", host) : host, server->port(),
             fmt::join(names, ", "), server->model().engine->limits().context);
  std::fflush(stdout);
  if (!server::IsLoopback(host) && settings.keys.empty()) {
    PrintWarning("anyone who reaches this address can use the server; --api-key asks for a key");
  }
  if (options.datastore.learn && settings.keys.empty()) {
    PrintWarning(
        "every client reads what the outputs of others taught; --api-key-file gives each its own "
        "namespace");
  }
  int signal = 0;
  sigwait(&signals, &signal);
  fmt::print(stderr, "foretoken: ending; running requests have {} seconds (again: end at once)\n",
             settings.shutdown_seconds);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // A second one ends the program.
  server->Shutdown();
  const std::string verdict = DraftVerdict(first, CostsOf(server->totals(), first));
  if (!verdict.empty()) PrintWarning(verdict);
  return 0;
}

void AddListenOptions(CLI::App* command, ServeOptions* options) {
  server::ServerOptions* server = &options->server;
  const OptionGroup add(command, "Server");
  add("--host", &server->http.host, "ADDRESS",
      "Address to listen at (default 127.0.0.1: this machine only)");
  add("--port", &server->http.port, "PORT", "Port (default 8080); 0 takes any free one")
      ->check(Between(0, 65535));
  add("--alias", &options->alias, "NAME",
      "How clients name the model; by default its folder's or GGUF file's name");
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
  add("--strict-fields", &options->server.service.defaults.strict_fields,
      "Refuse fields that the server does not know; else they are named in the reply's header "
      "X-Foretoken-Ignored");
}

void AddLoadOptions(CLI::App* command, ServeOptions* options) {
  server::ServerOptions* server = &options->server;
  const OptionGroup add(command, "Load");
  add("--batch,--parallel", &options->batch, "N",
      "Sequences decoded together (also -np; default 16)")
      ->check(Between(1, 256));
  add("--queue", &options->queue, "N",
      "Sequences that may wait; more are answered 429 (default 256)")
      ->check(Between(0, 65536));
  add("--max-prompt", &server->service.max_prompt_tokens, "N",
      "Tokens of a prompt at most; by default what the context holds")
      ->check(Between(1, 1 << 24));
  add("--client-limit", &server->service.client_limit, "N",
      "Sequences that one client may have under way (default: half of all places; all of them "
      "where "
      "only this machine calls)")
      ->check(Between(1, 1 << 17));
  add("--max-request-tokens", &server->service.max_request_tokens, "N",
      "Tokens of one request at most: prompts and outputs of all its choices (default 262144)")
      ->check(Between(std::int64_t{1}, std::int64_t{1} << 40));
  add("--connections", &server->http.limits.connections, "N",
      "Connections open at once; more are answered 503 (default 8192)")
      ->check(Between(1, 1 << 20));
  add("--max-body", &options->body_mb, "MB", "Megabytes of a request at most (default 4)")
      ->check(Between(0.001, 1024.0));
  add("--request-timeout", &server->service.request_seconds, "S",
      "Seconds that a request may take, waiting included (default 600)")
      ->check(Between(0.01, 1e6));
  add("--shutdown-seconds", &server->shutdown_seconds, "S",
      "Seconds that running requests have after SIGTERM (default 30)")
      ->check(Between(0.0, 1e6));
  add("--stall-seconds", &server->service.stall_seconds, "S",
      "/health fails after so long without progress (default 30)")
      ->check(Between(0.01, 1e6));
  add("--event-interval", &options->event_interval_ms, "MS",
      "Milliseconds between two writes of a stream at least; what comes in between goes out "
      "together (default 5)")
      ->check(Between(0, 1000));
}

}  // namespace

void AddServeCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      app->add_subcommand("serve", "Serve a model by an OpenAI-compatible HTTP API, with a page");
  const OptionGroup add(command, "Speculation");
  auto options = std::make_shared<ServeOptions>();
  options->generation.sampling.temperature = 1;
  AddListenOptions(command, options.get());
  AddLoadOptions(command, options.get());
  AddRequestOptions(command, options.get());
  AddLogOptions(command, options.get());
  AddModelOptions(command, &options->model);
  AddAdapterOptions(command, &options->adapters,
                    "requests name those that they want; may be repeated");
  AddChatTemplateOptions(command, &options->chat_template);
  AddModeOption(command, &options->mode);
  add("--modes", &options->modes, "LIST",
      "Modes that requests may choose; by default all that the models allow");
  AddSpeculationOptions(command, &options->speculation);
  add("--max-lookahead", &options->max_lookahead, "K",
      "The most tokens per round that a request may ask for (default 16)")
      ->check(Between(1, kMaxProposal));
  AddDatastoreOptions(command, &options->datastore);
  AddMemoryOptions(command, &options->model, &options->speculation);
  AddSamplingOptions(command, &options->generation);
  AddCoreOptions(command, &options->cores);
  command->footer(
      "Sampling options are what requests get that do not say otherwise; the temperature is 1, "
      "as OpenAI's, and the seed a random one unless given here. GET /props tells the limits.");
  command->callback([options, command, chosen] {
    *chosen = [options, command] {
      const auto given = [command](const char* name) {
        return command->count(name) > 0 || IsSet(*command->get_option(name));
      };
      options->server.service.random_seed = !given("--seed");
      return Serve(*options, given("--api-key"));
    };
  });
}

}  // namespace foretoken
