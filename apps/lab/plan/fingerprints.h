#pragma once

#include <string>

#include "apps/foretoken/options/options.h"
#include "apps/lab/study/calibration.h"
#include "base/result.h"

namespace foretoken {

/// The SHA-256 of the configuration of the model in a folder or GGUF file and of samples of all its
/// tensors: the same for a copy, another for other weights, and computed in milliseconds whatever
/// the model's size.
Result<std::string> FingerprintModel(const std::string& model);

/// What a calibration with these models is valid for; there may be no draft.
Result<ModelFingerprints> FingerprintModels(const ModelOptions& models);

/// What a calibration made here, with this split of the cores, is valid for.
MachineFingerprint FingerprintMachine(const Cores& cores);

}  // namespace foretoken
