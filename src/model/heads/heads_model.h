#pragma once

#include <memory>

#include "model/decoder/decoder_weights.h"
#include "model/model.h"

namespace foretoken {

/// A model of heads alone (FeatureSpec::Join::kHeads): a row that wants logits has a feature, zeros
/// where there is none, and its place in its block says by which head. Nothing is kept of any row,
/// and rows that want none do nothing. Borrows the backend.
std::unique_ptr<Model> MakeHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                      Backend* backend);

}  // namespace foretoken
