#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/request.h"
#include "json/json.h"

namespace foretoken {

/// A sample that is finished, as a line of the output has it.
struct RolloutSample {
  Json prompt;     ///< RolloutPrompt::id.
  int sample = 0;  ///< Which of the prompt's, from 0.
  std::uint64_t seed = 0;
  std::vector<Token> tokens;
  std::vector<float> logprobs;  ///< Natural, of each token, in the model's own distribution.
  std::string text;
  FinishReason finish = FinishReason::kEndOfSequence;
  int rounds = 0;
  int proposed = 0;
  int accepted = 0;
};

/// The sample's line, with its newline. `weights` names those that it was written with.
std::string FormatSample(const RolloutSample& sample, const std::string& weights);

/// What resuming must know of a line.
struct FinishedSample {
  std::string prompt;  ///< The id, as JSON.
  int sample = 0;
  int tokens = 0;
};

/// The output: a line that says what the samples depend on, then a line for each, in the order in
/// which they finish. A line is whole or, where the program was killed while it was written, the
/// last; and only whole lines count. Not thread-safe.
class RolloutFile {
 public:
  /// Goes on with the file at `path`, which begins with this header; or begins it, where it is
  /// missing or empty. Refuses any other file. Empty: standard output.
  static Result<RolloutFile> Open(const std::string& path, const Json& header);

  /// What was there.
  const std::vector<FinishedSample>& finished() const { return finished_; }

  /// Adds a line and hands it to the system.
  Status Add(const RolloutSample& sample);

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  RolloutFile(std::string path, std::string weights) : path_(std::move(path)), weights_(weights) {}

  Status ReadBefore(const Json& header);
  Status Append(const Json& header);
  Status Write(const std::string& line);

  std::string path_;
  std::string weights_;  // As lines name them.
  bool begun_ = false;   // Whether the header is there.
  std::vector<FinishedSample> finished_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace foretoken
