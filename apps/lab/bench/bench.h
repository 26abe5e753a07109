#pragma once

#include <cstdint>
#include <string>

#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/options/options.h"
#include "apps/lab/load/bench_server.h"
#include "apps/lab/load/neighbour.h"
#include "base/result.h"

namespace foretoken {

/// What `foretoken bench` is given.
struct BenchOptions : DecodingOptions {
  std::string modes;
  std::string fallbacks;  ///< To compare in mode ssd.
  std::string drafters;   ///< To compare in every mode that has one.
  PromptOptions prompts;
  int batch = 1;
  int prompt_tokens = 256;
  bool only_target_cores = false;
  std::string script;
  bool scripted_answers = false;
  std::int64_t target_delay_us = 0;
  ReportFiles files;
  NeighbourOptions neighbour;
  ServerBenchOptions server;
};

/// Measures modes side by side and writes the report; 1 where one gave other tokens than ar.
Result<int> RunBench(BenchOptions options);

}  // namespace foretoken
