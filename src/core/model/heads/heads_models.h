#pragma once

#include <memory>
#include <vector>

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

/// A model each of whose layers is a head (FeatureSpec::Join::kLayerHeads): `heads` has a decoder
/// of the same weights for each, of that layer alone. A row of a block that wants logits has the
/// place and the feature of the position before the block, and its place in the block says by which
/// head; where it has no feature its state is zeros. Other rows pass all layers, which keep their
/// keys and values. Borrows the backend.
std::unique_ptr<Model> MakeLayerHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                           std::vector<std::unique_ptr<Model>> heads,
                                           Backend* backend);

}  // namespace foretoken
