#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/model/translated_model.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// A drafter that reads the states of one target (ModelConfig::feature).
struct LearnedDraft {
  Checkpoint checkpoint;  ///< Its tensors, and those of the target that it shares.
  ModelConfig config;
  /// Translates the target's tokens into those that it drafts; null where these are all.
  std::shared_ptr<const Translation> translation;
  std::vector<std::string> notes;  ///< What a user should know, in a sentence each.
};

/// Whether a folder holds a drafter that reads states, by its config.json and the tensor that takes
/// these in, and not a model that could run alone; or a GGUF file, by its architecture.
bool IsLearnedDraft(const Checkpoint& folder);

/// Makes a drafter of such a folder or file, as Checkpoint::Open has read it, for a target as
/// OpenCheckpoint has. EAGLE-1, EAGLE-2 (whose network that is), EAGLE-3, P-EAGLE, DFlash, DSpark
/// and Medusa, as their authors, SpecForge and `speculators` write them, and EAGLE-3, DFlash and
/// DSpark as llama.cpp's converter does; docs/look_up/drafters.md says what they have. Whatever
/// does not fit the target, is missing or is unknown is refused in a sentence.
Result<LearnedDraft> ReadLearnedDraft(Checkpoint folder, const Checkpoint& target,
                                      const ModelConfig& target_config);

/// The same of the folder at `path`.
Result<LearnedDraft> OpenDraft(const std::filesystem::path& path, const Checkpoint& target,
                               const ModelConfig& target_config);

}  // namespace foretoken
