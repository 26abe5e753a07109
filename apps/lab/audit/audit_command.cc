#include <fmt/core.h>

#include <memory>

#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/audit/audit.h"
#include "apps/lab/common/study_commands.h"
#include "apps/lab/load/bench_server.h"

namespace foretoken {
namespace {

// How Foretoken's own requests switch speculation off.
constexpr char kOff[] = R"({"speculative":{"off":true}})";

struct AuditOptions {
  std::string url;
  std::string against;
  std::string model;
  std::string api_key;
  double timeout_s = 600;
  int batch = 8;
  std::string on;
  std::string off = kOff;
  PromptOptions prompts;
  GenerationOptions generation;
  ReportFiles files;
};

// What differs between two runs of the same prompts.
struct Side {
  ServerAccess access;
  LoadContent content;
};

Result<Side> SideFor(const AuditOptions& options, const std::string& url, Json extra) {
  FT_ASSIGN_OR_RETURN(ServerAccess access, AccessTo(url, options.api_key, options.timeout_s));
  Side side{std::move(access),
            {options.prompts, options.generation, options.model, std::move(extra)}};
  if (side.content.model.empty()) {
    FT_ASSIGN_OR_RETURN(side.content.model, FirstModel(side.access));
  }
  return side;
}

Result<int> Audit(AuditOptions options) {
  FT_RETURN_IF_ERROR(options.generation.Finish());
  FT_ASSIGN_OR_RETURN(Json on, ParseBodyEntries("--on-body", options.on, kOff));
  FT_ASSIGN_OR_RETURN(Json off, ParseBodyEntries("--off-body", options.off, kOff));
  const bool other = !options.against.empty();
  FT_ASSIGN_OR_RETURN(const Side with, SideFor(options, options.url, std::move(on)));
  FT_ASSIGN_OR_RETURN(const Side without, SideFor(options, other ? options.against : options.url,
                                                  other ? Json::object() : std::move(off)));
  FT_ASSIGN_OR_RETURN(const std::vector<PromptSet> sets, ReadPromptSets(options.prompts));
  const std::size_t count = CountPrompts(sets, options.prompts);
  const std::vector<AuditCell> cells = AuditCells(other || !options.off.empty(), options.batch);
  ProgressBar progress("Auditing", static_cast<std::int64_t>(count * cells.size()));
  std::vector<LoadRecord> baseline;
  std::vector<AuditResult> results;
  for (const AuditCell& cell : cells) {
    const Side& side = cell.speculates ? with : without;
    std::vector<LoadRecord> records =
        RunLoad(side.access, MakeLoadRequests(sets, side.content, 0, count),
                {.concurrency = cell.at_once}, [&progress] { progress.Advance(); });
    if (results.empty()) baseline = records;
    results.push_back(Compare(cell, baseline, records));
  }
  Json audit = AuditJson(results);
  audit["server"] = options.url;
  audit["model"] = with.content.model;
  audit["prompts"] = count;
  audit["temperature"] = options.generation.sampling.temperature;
  const std::string text =
      fmt::format("{} at {}: {} prompts, temperature {:g}\n\n{}", with.content.model, options.url,
                  count, options.generation.sampling.temperature, RenderAudit(audit));
  FT_RETURN_IF_ERROR(WriteReport(options.files, audit, text));
  return audit["lossless"] == true ? 0 : 1;
}

}  // namespace

void AddAuditCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "audit");
  auto options = std::make_shared<AuditOptions>();
  options->generation.stop.max_tokens = 64;
  const OptionGroup add(command, "Server");
  add("--server", &options->url, "URL", "The server's address, as http://127.0.0.1:8080")
      ->required();
  add("--against", &options->against, "URL",
      "Another server of the same model without speculation: its answers are the baseline");
  add("--off-body", &options->off, "JSON",
      R"(Entries of a request that switch speculation off (default {"speculative":{"off":true}}, as )"
      R"(Foretoken has it); "" where nothing does)");
  add("--on-body", &options->on, "JSON", "Entries that switch it on (default: the server's way)");
  add("--concurrency", &options->batch, "N", "Requests sent together in a batch (default 8)")
      ->check(Between(2, 256));
  add("--server-model", &options->model, "NAME",
      "Name of the model (default: the first that the server lists)");
  add("--api-key", &options->api_key, "KEY", "Sent as a bearer token (default: OPENAI_API_KEY)");
  add("--timeout", &options->timeout_s, "S",
      "Seconds of silence after which a request has failed (default 600)")
      ->check(Between(0.1, 1e6));
  AddPromptOptions(command, &options->prompts);
  AddSamplingOptions(command, &options->generation);
  AddStopOptions(command, &options->generation);
  const OptionGroup output(command, "Output");
  output("--json", &options->files.json, "FILE", "The report as JSON; - prints it");
  SetFooter(
      command,
      "Every prompt is sent without and with speculation, alone and beside others, to a server "
      "that has not seen it and to one that has. At temperature 0 all answers must be the same; "
      "above it, where the server promises the same answer for a seed. Exit code 1: they are not.");
  WhenChosen(command, chosen, [options] { return Audit(*options); });
}

}  // namespace foretoken
