#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "apps/foretoken/common/command_line.h"
#include "base/result.h"
#include "foretoken/sampling.h"

namespace foretoken {

/// Whether what a model's makers recommend is taken for options of sampling that are not given.
struct ModelSamplingOptions {
  std::string generation_config = "auto";
  std::set<std::string> given;  ///< The options among these that were given: NoteGiven.

  /// Sets in `sampling` what the files of the model at `path` recommend (ReadRecommendedSampling);
  /// an empty path is no model's.
  Status AddTo(const std::filesystem::path& path, SamplingParams* sampling) const;
};

void AddModelSamplingOption(CLI::App* app, ModelSamplingOptions* options);
/// Notes which options of sampling were given, once `app` has read them.
void NoteGiven(CLI::App* app, ModelSamplingOptions* options);

}  // namespace foretoken
