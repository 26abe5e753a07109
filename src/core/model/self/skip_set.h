#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "core/model/config/sublayers.h"

namespace foretoken {

/// Sub-layers that were found to be left out best of one model, as a JSON file holds them.
struct SkipSet {
  std::string model;  ///< Fingerprint of the model's identity.
  SkippedSublayers skipped{0};
  double agreement = 0;  ///< Share of the tokens that the draft held likeliest as the model did.
  double cost = 0;       ///< The time of a draft's pass, in passes of the model.
  double speedup = 0;    ///< The speedup that agreement and cost promise (PredictedSpeedup).
  int tokens = 0;        ///< How many tokens `agreement` was measured on.
  int sets = 0;          ///< How many sets were compared.
};

Status WriteSkipSet(const std::filesystem::path& path, const SkipSet& set);
Result<SkipSet> ReadSkipSet(const std::filesystem::path& path);

}  // namespace foretoken
