#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// How ModelSource::own_drafter begins where the draft is an exit.
inline constexpr std::string_view kExitDrafter = "exit=";

/// The folder that "exit=FOLDER" names, as ModelSource::own_drafter has it; empty where it names no
/// folder that is there.
std::string_view TrainedExitFolder(std::string_view own);

/// Puts a trained exit in place of the model's own tensors: behind its first E layers the model
/// then has one that was trained to stand there, and the last norm that was trained with it (an
/// early exit with an adapter, as in Kangaroo, arXiv 2404.18911, whose adapter is attention alone).
/// The folder is as foretoken_train's `exit` writes it: config.json with `model_type` "exit",
/// `exit`, which is E, and `hidden_size`; model.safetensors with the tensors of the model's layer
/// E, in their shapes, and `model.norm.weight`. Returns E. `model` is a checkpoint of this
/// configuration (OpenCheckpoint) and stays as it was where the exit is refused.
Result<int> UseTrainedExit(const std::filesystem::path& folder, const ModelConfig& config,
                           Checkpoint* model);

}  // namespace foretoken
