#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"
#include "core/weights/weight_type.h"
#include "foretoken/precision.h"

namespace foretoken {

/// What mixes of formats depend on.
MixBasis MixBasisOf(const ModelConfig& config);

/// Opens a folder or a GGUF file. `weights` names what its weights are to be stored as, of whatever
/// type they are in the files (ParseWeightType); empty: as they are.
Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path, std::string_view weights);

/// What a model is computed in where nothing is asked for: kPortable where some of its weights are
/// quantised, else kBF16.
Precision UsualPrecision(const Checkpoint& checkpoint);

}  // namespace foretoken
