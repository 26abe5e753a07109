#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/rollout/rollout_file.h"
#include "apps/lab/rollout/rollout_prompts.h"
#include "apps/lab/rollout/tail_plan.h"
#include "base/result.h"
#include "foretoken/engine.h"

namespace foretoken {

/// Samples to be taken.
struct RolloutJob {
  std::string model;  ///< What is said of it is said of this name.
  std::vector<RolloutPrompt> prompts;
  int samples = 1;  ///< Samples of each prompt.
  int batch = 1;    ///< Decoded together.
  /// What all samples have in common; their seeds follow from its seed (SampleSeed).
  Request request;
  std::optional<TailPlan> tail;  ///< Nothing: the last ones go on as the others did.
};

/// What came of a job.
struct RolloutReport {
  std::int64_t samples = 0;  ///< Taken now.
  std::int64_t skipped = 0;  ///< Samples that were there.
  std::int64_t left = 0;     ///< Not taken: it was interrupted.
  std::int64_t total_ns = 0;
  /// The last twentieth of the samples, at least one: from when all others had finished to the end.
  std::int64_t tail_samples = 0;
  std::int64_t tail_ns = 0;
  std::int64_t tail_tokens = 0;  ///< Written in that time.
  RequestStats stats;            ///< Counts of all.
};

/// Takes the samples of `job` that `file` does not have yet and adds each to it when it is
/// finished, on the calling thread. Ctrl-C (CatchInterrupts) ends it: unfinished samples are lost.
Result<RolloutReport> RunRollout(const RolloutJob& job, Engine* engine, RolloutFile* file);

}  // namespace foretoken
