#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/config/model_config.h"
#include "core/model/decoder/decoder_weights.h"
#include "core/model/model.h"

namespace foretoken {

/// Adds to what a pass says of positions what the tokens before them tell (MarkovSpec). Keeps the
/// room for that.
class MarkovMixer {
 public:
  /// Before a pass of so many rows that want logits; forgets what was kept where the room grows.
  void GrowTo(std::size_t wanted, const ModelConfig& config);

  /// Keeps the states [count, hidden], as the lm head reads them, of the pass's rows of logits from
  /// number `first` on.
  void Keep(const ModelConfig& config, const float* states, std::int64_t first, std::int64_t count);

  /// As Model::Follow; `logits` are those of the pass.
  PathLogits Follow(const ModelConfig& config, const MarkovWeights& weights,
                    std::span<const PathRow> rows, const float* logits, Backend* backend);

 private:
  void Grow(std::size_t rows, const ModelConfig& config);
  // The state that a row of logits is made of.
  const float* StateOf(const ModelConfig& config, std::int64_t row) const;
  // What the numbers of the last tokens have become that the output projection reads.
  const float* Latents(const ModelConfig& config, const MarkovWeights& weights,
                       std::span<const PathRow> rows, Backend* backend);
  void Gate(const ModelConfig& config, const MarkovWeights& weights, std::span<const PathRow> rows,
            Backend* backend);
  void Unroll(const ModelConfig& config, const MarkovWeights& weights,
              std::span<const PathRow> rows, Backend* backend);
  // States of rows, and the numbers of their last tokens behind them where there are such.
  const float* LayStates(const ModelConfig& config, std::span<const PathRow> rows, bool tokens);

  Buffer states_;      // [rows of the pass that want logits, hidden]
  Buffer embedded_;    // [rows, rank]: of the last tokens.
  Buffer latents_;     // [rows, rank]
  Buffer inputs_;      // [rows, 2 * rank + hidden]
  Buffer made_;        // [rows, 3 * rank]
  Buffer cells_;       // [rows, rank]: what the cells remember.
  Buffer logits_;      // [rows, vocabulary]
  Buffer maxima_;      // [rows, groups of the vocabulary]
  Buffer confidence_;  // [rows]
  std::vector<Token> tokens_;
  std::vector<std::size_t> active_;  // Rows whose paths are not at their end.
};

}  // namespace foretoken
