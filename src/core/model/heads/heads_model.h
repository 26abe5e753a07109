#pragma once

#include <memory>

#include "core/model/decoder/decoder_weights.h"
#include "core/model/model.h"

namespace foretoken {

/// A model whose heads make logits of states (FeatureSpec::has_heads). A row that wants logits has
/// a feature, zeros where there is none. Its place in its block says by which head, or, where heads
/// are sequential, the length of its path; these read its tokens as well. `layers` is a decoder of
/// the same weights: where it has layers, features that the target has kept pass through them,
/// which keep keys and values, and heads read what its rows leave. Otherwise nothing is kept of any
/// row. Rows that want nothing do nothing but that. Borrows the backend.
std::unique_ptr<Model> MakeHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                      std::unique_ptr<Model> layers, Backend* backend);

}  // namespace foretoken
