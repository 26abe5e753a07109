#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "foretoken/request.h"

namespace foretoken {

/// All that a request produced.
struct Generation {
  /// Tokens that came together, and when.
  struct Burst {
    std::int64_t time_ns = 0;
    int tokens = 0;
  };

  std::vector<Token> tokens;
  std::vector<TokenOrigin> origins;
  std::vector<std::vector<TokenLogprob>> logprobs;  ///< Per token; empty unless asked for.
  std::vector<Burst> bursts;
  std::string text;
  std::vector<std::size_t> piece_ends;  ///< Where in `text` each token's part ends.
  FinishReason finish = FinishReason::kCancelled;
  RequestStats stats;

  /// Text that became final with token `index`.
  std::string_view PieceOf(std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : piece_ends[index - 1];
    return std::string_view(text).substr(begin, piece_ends[index] - begin);
  }
};

/// "ended by the model" ...: how a generation ended, to be read by people.
std::string_view DescribeFinish(FinishReason reason);

/// Counts, times and rates of one request, for `--json`.
nlohmann::json StatsJson(const RequestStats& stats);

/// What mode auto did: rounds and predicted against measured speed by mode.
nlohmann::json PlannerJson(const PlannerReport& report);

/// Hits among cache lookups; negative where there was none.
double HitRate(const RequestStats& stats);

/// Called for every token as it comes, on the thread that steps the engine.
using TokenCallback = std::function<void(SequenceId, const EmittedToken&)>;

/// Runs requests to their end, `batch` of them in flight at most.
class GenerationRunner {
 public:
  explicit GenerationRunner(Engine* engine) : engine_(engine) {}

  /// Called before every step of the engine; may force preemptions or cancel.
  void set_before_step(std::function<void()> before_step) { before_step_ = std::move(before_step); }
  void set_on_token(TokenCallback on_token) { on_token_ = std::move(on_token); }

  /// Generations in the order of `requests`, whose listeners are replaced. An error where the
  /// engine refuses one; those in flight are then cancelled.
  Result<std::vector<Generation>> Run(std::vector<Request> requests, int batch);
  /// The same for one.
  Result<Generation> Run(Request request);

 private:
  class Recorder;

  Engine* engine_;
  std::function<void()> before_step_;
  TokenCallback on_token_;
};

}  // namespace foretoken
