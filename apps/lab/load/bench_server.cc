#include "apps/lab/load/bench_server.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "apps/foretoken/common/terminal.h"
#include "apps/lab/load/mode_comparison.h"

namespace foretoken {
namespace {

constexpr std::string_view kGroup = "Server";
constexpr int kMaxConnections = 1024;
constexpr int kMaxWarmUp = 8;

std::string DumpJson(const Json& value) { return value.dump(); }

// The body without its prompt. What is at its default is left out, so that servers that know fewer
// options can be measured too.
Json CommonBody(const LoadContent& content) {
  const SamplingParams& sampling = content.generation.sampling;
  Json body = {{"model", content.model},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"max_tokens", content.generation.stop.max_tokens},
               {"temperature", sampling.temperature}};
  ForEachSamplingField([&](const auto& field) {
    const auto value = sampling.*field.member;
    if (value != field.by_default) body[field.name] = value;
  });
  for (const auto& [token, bias] : sampling.logit_bias) {
    body["logit_bias"][std::to_string(token)] = bias;
  }
  if (!content.generation.stop.stop_strings.empty()) {
    body["stop"] = content.generation.stop.stop_strings;
  }
  if (content.generation.stop.ignore_eos) body["ignore_eos"] = true;
  return body;
}

// The load that a server gets, whatever the mode.
struct LoadPlan {
  ServerAccess access;
  std::vector<PromptSet> sets;
  LoadContent content;
  LoadShape shape;
  NeighbourPlan neighbour;
  std::size_t count = 0;  // Requests of a round.
  int warm_up = 0;

  // The warm-up goes on in the prompts where the measurement ends, so that it fills no prefix
  // cache for prompts to be measured unless they repeat anyway.
  std::vector<LoadRequest> Requests(const std::string& mode, std::size_t begin,
                                    std::size_t number) const {
    LoadContent of_mode = content;
    if (!mode.empty()) of_mode.extra["speculative"]["mode"] = mode;
    return MakeLoadRequests(sets, of_mode, begin, number);
  }
};

Json Meta(const ServerBenchOptions& options, const LoadPlan& plan) {
  const auto& [access, sets, content, shape, neighbour, count, warm_up] = plan;
  const SamplingParams& sampling = content.generation.sampling;
  Json meta = {
      {"version", FORETOKEN_VERSION},
      {"server", options.url},
      {"model", content.model},
      {"connections", shape.concurrency},
      {"arrivals", shape.rate > 0 ? fmt::format("Poisson, {:g} a second", shape.rate)
                                  : std::string("closed loop")},
      {"temperature", sampling.temperature},
      {"seed", sampling.seed},
      {"max_tokens", content.generation.stop.max_tokens},
      {"stops_at_eos", !content.generation.stop.ignore_eos},
  };
  for (const PromptSet& set : sets) {
    meta["data"].push_back(fmt::format("{} ({} prompts)", set.name, set.prompts.size()));
  }
  if (!content.extra.empty()) meta["body"] = DumpJson(content.extra);
  if (options.goals.ttft_ms) meta["slo_ttft_ms"] = *options.goals.ttft_ms;
  if (options.goals.tpot_ms) meta["slo_tpot_ms"] = *options.goals.tpot_ms;
  if (!options.modes.empty()) meta["rounds"] = options.rounds;
  if (!neighbour.cores.empty()) meta["neighbour"] = neighbour.Describe();
  return meta;
}

// Each mode is first, second ... equally often, so that a drift of the machine favours none.
std::vector<ModeLoad> Measure(const LoadPlan& plan, const std::vector<std::string>& modes,
                              std::size_t rounds) {
  ProgressBar progress("Warming up", static_cast<std::int64_t>(plan.count * modes.size() * rounds));
  LoadShape at_once = plan.shape;
  at_once.rate = 0;
  std::vector<ModeLoad> loads;
  for (const std::string& mode : modes) {
    const Neighbour beside(plan.neighbour, plan.shape.seed);
    RunLoad(plan.access, plan.Requests(mode, plan.count, plan.warm_up), at_once, [] {});
    loads.push_back({mode, {}});
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < modes.size(); ++i) {
      ModeLoad& load = loads[(i + round) % modes.size()];
      progress.SetLabel(load.mode.empty() ? "Requests" : load.mode);
      const Neighbour beside(plan.neighbour, plan.shape.seed + round);
      load.rounds.push_back(RunLoad(plan.access, plan.Requests(load.mode, 0, plan.count),
                                    plan.shape, [&] { progress.Advance(); }));
    }
  }
  return loads;
}

Result<std::vector<std::string>> ModeNames(const std::string& list) {
  if (list.empty()) return std::vector<std::string>{""};
  FT_ASSIGN_OR_RETURN(const std::vector<Mode> modes, ParseModes(list));
  std::vector<std::string> names;
  for (const Mode mode : modes) names.emplace_back(ModeName(mode));
  return names;
}

}  // namespace

Result<ServerAccess> AccessTo(const std::string& url, const std::string& api_key,
                              double timeout_s) {
  FT_ASSIGN_OR_RETURN(ServerAddress address, ParseServerUrl(url));
  const char* key = std::getenv("OPENAI_API_KEY");
  return ServerAccess{std::move(address), api_key.empty() && key != nullptr ? key : api_key,
                      timeout_s};
}

Result<Json> ParseBodyEntries(std::string_view option, const std::string& text,
                              std::string_view example) {
  if (text.empty()) return Json::object();
  Json body = Json::Parse(text);
  if (body.is_object()) return body;
  return Invalid("{} '{}' is not a JSON object, as in {}", option, text, example);
}

std::size_t CountPrompts(const std::vector<PromptSet>& sets, const PromptOptions& options) {
  const std::size_t limit = options.limit.value_or(-1);
  std::size_t count = 0;
  for (const PromptSet& set : sets) count += std::min(set.prompts.size(), limit);
  return count;
}

void AddServerBenchOptions(CLI::App* command, ServerBenchOptions* options) {
  const OptionGroup group(command, std::string(kGroup));
  const AddedOption server =
      group("--server", &options->url, "URL",
            "Measure the OpenAI-compatible server at this address in place of a model in process");
  const auto add = [&](const char* name, auto* value, const char* type, const char* text) {
    return group(name, value, type, text)->needs(server);
  };
  add("--concurrency", &options->shape.concurrency, "N",
      "Connections, each with one request under way (default 1; with --rate as many as arrive)")
      ->check(Between(1, kMaxConnections));
  add("--rate", &options->shape.rate, "R",
      "Poisson arrivals per second; without it a connection sends its next request at once")
      ->check(Between(1e-3, 1e6));
  add("--requests", &options->requests, "N",
      "Requests to send, over the prompts in turn (default: each prompt once)")
      ->check(Between(1, 1 << 24));
  add("--warmup", &options->warm_up, "N",
      "Requests before the measurement (default: one for each connection, at most 8)")
      ->check(Between(0, 1 << 16));
  add("--server-model", &options->model, "NAME",
      "Name of the model (default: the first that the server lists)");
  add("--api-key", &options->api_key, "KEY", "Sent as a bearer token (default: OPENAI_API_KEY)");
  add("--timeout", &options->timeout_s, "S",
      "Seconds of silence after which a request has failed (default 600)")
      ->check(Between(0.1, 1e6));
  add("--body", &options->body, "JSON",
      R"(Entries to add to every request, as in {"speculative":{"mode":"sd"}})");
  add("--rounds", &options->rounds, "N",
      "With --modes: how often each mode has its turn with all requests (default 4)")
      ->check(Between(1, 1000));
  add("--slo-ttft-ms", &options->goals.ttft_ms, "MS", "Goodput: longest time to the first text")
      ->check(Between(0.0, 1e9));
  add("--slo-tpot-ms", &options->goals.tpot_ms, "MS", "Goodput: longest time per output token")
      ->check(Between(0.0, 1e9));
}

Status CheckServerBenchOptions(const CLI::App& command) {
  for (const GivenOption& option : GivenOptions(command)) {
    const std::string& group = option.group;
    const bool understood = group == kGroup || group == "Prompts" || group == "Sampling" ||
                            group == "Stopping" || group == "Output" || group == "Neighbour" ||
                            option.long_name == "modes";
    const bool local = option.long_name == "prompt-tokens";
    if (!understood || local) {
      return Invalid(
          "{} has no meaning with --server, which measures a model that the server has loaded",
          option.name);
    }
  }
  return {};
}

std::vector<LoadRequest> MakeLoadRequests(const std::vector<PromptSet>& sets,
                                          const LoadContent& content, std::size_t begin,
                                          std::size_t count) {
  std::vector<std::pair<const std::string*, bool>> prompts;  // Text, and whether it is a chat turn.
  for (const PromptSet& set : sets) {
    const std::size_t limit = content.prompts.limit.value_or(-1);
    for (std::size_t i = 0; i < std::min(set.prompts.size(), limit); ++i) {
      prompts.emplace_back(&set.prompts[i], content.prompts.AsChat(set));
    }
  }
  std::vector<LoadRequest> requests;
  const Json common = CommonBody(content);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [text, chat] = prompts[(begin + i) % prompts.size()];
    Json body = common;
    body["seed"] = content.generation.sampling.seed + begin + i;
    if (chat) {
      body["messages"] = {{{"role", "user"}, {"content", *text}}};
    } else {
      body["prompt"] = *text;
    }
    body.update(content.extra);
    requests.push_back({chat ? "/v1/chat/completions" : "/v1/completions", DumpJson(body)});
  }
  return requests;
}

namespace {

Result<LoadPlan> PlanLoad(const ServerBenchOptions& options, const PromptOptions& prompts,
                          GenerationOptions generation) {
  FT_RETURN_IF_ERROR(generation.Finish());
  LoadPlan plan{.content = {prompts, std::move(generation), options.model, {}},
                .shape = options.shape};
  FT_ASSIGN_OR_RETURN(plan.content.extra,
                      ParseBodyEntries("--body", options.body, R"({"speculative":{"mode":"sd"}})"));
  FT_ASSIGN_OR_RETURN(plan.neighbour, NeighbourPlan::Read(options.neighbour));
  FT_ASSIGN_OR_RETURN(plan.access, AccessTo(options.url, options.api_key, options.timeout_s));
  FT_ASSIGN_OR_RETURN(plan.sets, ReadPromptSets(prompts));
  if (plan.content.model.empty()) {
    FT_ASSIGN_OR_RETURN(plan.content.model, FirstModel(plan.access));
  }
  plan.count = options.requests > 0 ? options.requests : CountPrompts(plan.sets, prompts);
  plan.shape.seed = plan.content.generation.sampling.seed;
  if (plan.shape.concurrency == 0) {
    plan.shape.concurrency =
        plan.shape.rate > 0 ? static_cast<int>(std::min<std::size_t>(plan.count, kMaxConnections))
                            : 1;
  }
  plan.warm_up =
      options.warm_up >= 0 ? options.warm_up : std::min(plan.shape.concurrency, kMaxWarmUp);
  return plan;
}

}  // namespace

Result<int> RunServerBench(const ServerBenchOptions& options, const PromptOptions& prompts,
                           GenerationOptions generation, const ReportFiles& files) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> modes, ModeNames(options.modes));
  FT_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(options, prompts, std::move(generation)));
  const bool compares = !options.modes.empty();
  const std::vector<ModeLoad> loads = Measure(plan, modes, compares ? options.rounds : 1);

  Json report = {{"kind", compares ? "modes" : "load"},
                 {"meta", Meta(options, plan)},
                 {"definitions", LoadDefinitions()}};
  std::string text =
      fmt::format("{} at {}: {}, {} connections, temperature {:g}\n", plan.content.model,
                  options.url, report["meta"]["arrivals"].get<std::string>(),
                  plan.shape.concurrency, plan.content.generation.sampling.temperature);
  text += plan.neighbour.Sentence();
  if (compares) {
    report["modes"] = ModesJson(loads, options.goals);
    text += "\n" + RenderModes(report["modes"]);
  } else {
    report["load"] = LoadJson(loads.front().rounds, options.goals);
    text += "\n" + RenderLoad(report["load"]);
  }
  FT_RETURN_IF_ERROR(WriteReport(files, report, text));
  const bool failed = std::ranges::any_of(loads, [](const ModeLoad& load) {
    return std::ranges::any_of(load.rounds, [](const auto& round) {
      return !std::ranges::all_of(round, &LoadRecord::ok);
    });
  });
  return failed ? 1 : 0;
}

}  // namespace foretoken
