#pragma once

#include <filesystem>
#include <optional>

#include "foretoken/result.h"

namespace foretoken {

/// What a model's makers recommend; what they say nothing of is empty.
struct RecommendedSampling {
  std::optional<float> temperature;
  std::optional<int> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
};

/// What the files of the model at `path` recommend: generation_config.json of a folder, unless it
/// says `"do_sample": false`, and general.sampling.* of a GGUF file. Refuses, in one sentence,
/// values out of range.
Result<RecommendedSampling> ReadRecommendedSampling(const std::filesystem::path& path);

}  // namespace foretoken
