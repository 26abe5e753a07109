#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/decoder/decoder_weights.h"

namespace foretoken {

/// What the parts of a mixture read of rows, [rows, hidden] each.
struct ExpertInputs {
  const float* router;
  const float* experts;
  const float* shared;
};

/// Sends rows through the experts that they choose. Rows are ordered by expert, so that a pass
/// reads the weights of each chosen expert once; what the experts of a row make is added up in the
/// order in which the row chose them, whatever other rows there are; what the expert makes that all
/// rows share comes last. Owns the room that it takes.
class ExpertMixer {
 public:
  /// Makes room for that many rows of any layer.
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// What the experts of a layer make of rows x, [rows, hidden]; valid, and the caller's to change,
  /// until the next call. `epsilon` is of the norms of experts that are apart.
  float* Mix(const MlpSpec& mlp, const LayerWeights& layer, const ExpertInputs& x, float epsilon,
             int rows, Backend* backend);

 private:
  void Choose(const MlpSpec& mlp, const LayerWeights& layer, const float* x, int rows,
              Backend* backend);
  void OrderByExpert(const Routing& routing, int rows);
  void AddShared(const MlpSpec& mlp, const LayerWeights& layer, const float* x, float epsilon,
                 int rows, Backend* backend);

  std::vector<std::int32_t> experts_;  // [rows, chosen]
  std::vector<std::int32_t> places_;   // [rows, chosen]: where each lies in that order.
  std::vector<std::int32_t> ends_;     // Where each expert's rows end.
  std::vector<RowGroup> groups_;
  Buffer scores_;   // [rows, experts]
  Buffer weights_;  // [rows, chosen]
  Buffer inputs_;   // [rows * chosen, hidden], in that order, as is what follows.
  Buffer gate_up_;  // [rows * chosen, 2 * intermediate]; then of the shared expert, as are
  Buffer mixed_;    // [rows * chosen, intermediate]
  Buffer made_;     // [rows * chosen, hidden]
  Buffer sums_;     // [rows, hidden]
};

}  // namespace foretoken
