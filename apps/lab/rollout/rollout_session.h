#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/options/options.h"
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

/// Samples of a prompt, at most.
inline constexpr int kMaxSamples = 1 << 20;

struct RolloutOptions : DecodingOptions {
  PromptOptions prompts;
  std::string out;  ///< Empty: standard output.
  int samples = 1;
  int batch = 32;
  std::string tail_mode;  ///< Empty: as `mode`.
  bool serve_jobs = false;
  bool json = false;
};

/// What a session is asked for.
struct RolloutOrder {
  PromptOptions prompts;
  int samples = 1;
  std::uint64_t seed = 0;
  std::string out;
  std::string target;  ///< The folder or file of the weights; empty: those that were used last.
};

/// What it has done, and with what.
struct RolloutDone {
  RolloutReport report;
  std::string target;   ///< The target's label.
  std::string weights;  ///< The fingerprint of the target's weights.
  std::string draft;    ///< Empty: none.
  Mode mode;
  std::optional<Mode> tail_mode;  ///< Nothing: as `mode`.
  std::size_t prompts = 0;
};

/// Takes samples, one order after the other. Between two of them the target's weights may become
/// others; drafts' stay in memory. Not thread-safe.
class RolloutSession {
 public:
  explicit RolloutSession(RolloutOptions options);
  ~RolloutSession();

  /// An order of weights with another tokenizer leaves the session as it was. Another error may
  /// come when its weights are in place or, where they could not be loaded, none: the next order
  /// then loads its own or those that were used last.
  Result<RolloutDone> Take(const RolloutOrder& order);

 private:
  struct Loaded;
  struct Drafts;

  Status LoadFor(const RolloutOrder& order);
  Status CheckTokenizer(const std::string& target) const;
  Result<std::unique_ptr<Loaded>> Load(const std::string& target);
  Status OpenEngine(const std::vector<RolloutPrompt>& prompts);

  RolloutOptions options_;          // As they were given.
  std::string target_;              // The orders' target; empty: that of the options.
  std::string tokenizer_;           // Fingerprint of the first target's; empty: none was loaded.
  std::unique_ptr<Drafts> drafts_;  // Null: no engine was opened.
  std::unique_ptr<Loaded> loaded_;  // Null: nothing is.
};

}  // namespace foretoken
