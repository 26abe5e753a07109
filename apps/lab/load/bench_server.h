#pragma once

#include <string>
#include <vector>

#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/options/options.h"
#include "apps/lab/load/bench_server_load.h"
#include "apps/lab/load/bench_server_report.h"
#include "apps/lab/load/neighbour.h"
#include "json/json.h"

namespace foretoken {

/// `bench --server`: load on an OpenAI-compatible server.
struct ServerBenchOptions {
  std::string url;                    ///< Empty: bench runs in process.
  LoadShape shape{.concurrency = 0};  ///< 0: one, or with a rate as many as arrive.
  int requests = 0;                   ///< 0: one for each prompt.
  int warm_up = -1;                   ///< -1: one for each connection, at most 8.
  std::string model;
  std::string api_key;
  double timeout_s = 600;
  std::string body;  ///< A JSON object whose entries are added to every request.
  LoadGoals goals;
  std::string modes;  ///< To compare, of Foretoken's server; empty: what requests get anyway.
  int rounds = 4;     ///< Turns of each mode.
  NeighbourOptions neighbour;
};

/// What requests say.
struct LoadContent {
  PromptOptions prompts;
  GenerationOptions generation;
  std::string model;
  Json extra;  ///< An object.
};

void AddServerBenchOptions(CLI::App* command, ServerBenchOptions* options);

/// Refuses options of `command` that were given beside --server but speak of a model in process.
Status CheckServerBenchOptions(const CLI::App& command);

/// How a server is reached with this key, or OPENAI_API_KEY where it is empty. An error where `url`
/// is no address.
Result<ServerAccess> AccessTo(const std::string& url, const std::string& api_key, double timeout_s);

/// Entries to add to a request's body: `text` as a JSON object, empty for none. An error names the
/// `option` and shows an `example`.
Result<Json> ParseBodyEntries(std::string_view option, const std::string& text,
                              std::string_view example);

/// How many prompts of all sets `options` lets through.
std::size_t CountPrompts(const std::vector<PromptSet>& sets, const PromptOptions& options);

/// `count` requests over the prompts of all sets in turn, beginning with prompt number `begin`: a
/// chat turn for questions, a text to go on with for openings, unless --chat or --raw decides.
/// Request i has seed + i.
std::vector<LoadRequest> MakeLoadRequests(const std::vector<PromptSet>& sets,
                                          const LoadContent& content, std::size_t begin,
                                          std::size_t count);

/// Runs the load and reports it. Exit code 1 where a request failed.
Result<int> RunServerBench(const ServerBenchOptions& options, const PromptOptions& prompts,
                           GenerationOptions generation, const ReportFiles& files);

}  // namespace foretoken
