#include "apps/lab/rollout/rollout_jobs.h"

#include <fmt/core.h>

#include <cstdio>
#include <iostream>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/interrupts.h"
#include "apps/lab/rollout/rollout_report.h"
#include "base/text/text.h"
#include "json/json.h"
#include "json/json_object.h"

namespace foretoken {

Result<RolloutOrder> ParseRolloutJob(const std::string& line, const RolloutOptions& options,
                                     const std::string& place) {
  const auto fields = Json::Parse(line);
  if (!fields.is_object()) return Invalid("{} is no JSON object", place);
  RolloutOrder order{.prompts = options.prompts,
                     .samples = options.samples,
                     .seed = options.generation.sampling.seed};
  Status status;
  JsonObject object(&fields, place, &status);
  order.prompts.files = {object.Text("prompts")};
  order.out = object.Text("out");
  object.Int("samples", 1, kMaxSamples, &order.samples);
  object.String("target", &order.target);
  if (const auto* seed = object.Find("seed")) {
    if (seed->is_number_unsigned()) {
      order.seed = seed->get<std::uint64_t>();
    } else {
      object.Refuse("has a seed that is no whole number from 0 on");
    }
  }
  object.Close();
  if (!status.ok()) return status.error();
  return order;
}

int ServeRolloutJobs(const RolloutOptions& options) {
  RolloutSession session(options);
  int code = kSucceeded;
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    if (Trim(line).empty()) continue;
    Json answer = {{"job", number}};
    const auto order =
        ParseRolloutJob(line, options, fmt::format("line {} of standard input", number));
    CatchInterrupts();
    Result<RolloutDone> done =
        order.ok() ? session.Take(*order) : Result<RolloutDone>(order.error());
    const bool interrupted = Interrupted();
    LetInterruptsEnd();
    if (done.ok()) {
      answer.update(RolloutReportJson(*done));
      answer["out"] = order->out;
    } else {
      answer["error"] = done.error().message;
    }
    fmt::print("{}\n", answer.dump());
    std::fflush(stdout);
    if (!done.ok() || interrupted) code = kCheckFailed;
    if (interrupted) break;
  }
  return code;
}

}  // namespace foretoken
