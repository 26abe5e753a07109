#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/engine.h"

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
  /// Per prompt token after the first; empty unless asked for.
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;
  std::vector<float> embedding;  ///< The prompt's embedding; empty unless asked for.
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

/// An error where one of them ended as kNotFinite: NotFiniteMessage of `model`.
Status CheckFiniteLogits(std::span<const Generation> generations, std::string_view model);

/// What may be done while requests run, on the thread that steps the engine.
struct GenerateHooks {
  std::function<void(SequenceId, const EmittedToken&)> on_token = {};  ///< For every token.
  std::function<void(SequenceId, const RoundRecord&)> on_round = {};   ///< Before its tokens.
  std::function<void()> before_step = {};  ///< Before every step; may cancel.
};

/// Runs requests on the calling thread to their end, `batch` of them in flight at most. Generations
/// in the order of `requests`, whose listeners are replaced. An error where the engine refuses one;
/// those in flight are then cancelled.
Result<std::vector<Generation>> Generate(Engine& engine, std::vector<Request> requests, int batch,
                                         const GenerateHooks& hooks = {});
/// The same for one.
Result<Generation> Generate(Engine& engine, Request request, const GenerateHooks& hooks = {});

}  // namespace foretoken
