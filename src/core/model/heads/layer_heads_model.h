#pragma once

#include <memory>
#include <vector>

#include "core/model/decoder/decoder_weights.h"
#include "core/model/model.h"

namespace foretoken {

/// A model each of whose layers is a head (FeatureSpec::Join::kLayerHeads): `heads` has a decoder
/// of the same weights for each, of that layer alone. A row of a block that wants logits has the
/// place and the feature of the position before the block, and its place in the block says by which
/// head; where it has no feature its state is zeros. Other rows pass all layers, which keep their
/// keys and values. Borrows the backend.
std::unique_ptr<Model> MakeLayerHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                           std::vector<std::unique_ptr<Model>> heads,
                                           Backend* backend);

}  // namespace foretoken
