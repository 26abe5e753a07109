#include "apps/foretoken/options/model_sampling.h"

#include "apps/foretoken/options/options.h"
#include "foretoken/recommended_sampling.h"

namespace foretoken {
namespace {

// Options that a model's files may have a value for.
constexpr const char* kTemperature = "--temp";
constexpr const char* kTopK = "--top-k";
constexpr const char* kTopP = "--top-p";
constexpr const char* kMinP = "--min-p";
constexpr const char* kRepeatPenalty = "--repeat-penalty";

}  // namespace

Status ModelSamplingOptions::AddTo(const std::filesystem::path& path,
                                   SamplingParams* sampling) const {
  if (path.empty() || generation_config == "none") return {};
  FT_ASSIGN_OR_RETURN(const RecommendedSampling recommended, ReadRecommendedSampling(path));
  const auto add = [this](const char* option, const auto& value, auto* to) {
    if (value.has_value() && !given.contains(option)) *to = *value;
  };
  add(kTemperature, recommended.temperature, &sampling->temperature);
  add(kTopK, recommended.top_k, &sampling->top_k);
  add(kTopP, recommended.top_p, &sampling->top_p);
  add(kMinP, recommended.min_p, &sampling->min_p);
  add(kRepeatPenalty, recommended.repetition_penalty, &sampling->repetition_penalty);
  return {};
}

void AddModelSamplingOption(CLI::App* app, ModelSamplingOptions* options) {
  const OptionGroup add(app, "Sampling");
  add("--generation-config", &options->generation_config, "WHICH",
      "Of these options, those that are not given: auto (default: as the model's "
      "generation_config.json or GGUF file recommends) or none (as this help says)")
      ->check(OneOf({"auto", "none"}));
}

void NoteGiven(CLI::App* app, ModelSamplingOptions* options) {
  for (const char* name : {kTemperature, kTopK, kTopP, kMinP, kRepeatPenalty}) {
    const AddedOption option = FindOption(app, name);
    if (option.has_value()) options->given.insert(name);
  }
}

}  // namespace foretoken
