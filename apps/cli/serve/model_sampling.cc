#include "cli/serve/model_sampling.h"

#include <fmt/core.h>

#include <algorithm>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/read_file.h"
#include "json/json_object.h"

namespace foretoken {

Status AddModelSampling(const std::string& model, const std::set<std::string>& given,
                        SamplingParams* sampling) {
  const auto path = std::filesystem::path(model) / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  FT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path.string()));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return InvalidInput(fmt::format("'{}' is no JSON object", path.string()));
  }
  Status status;
  JsonObject config(&json, path.string(), &status);
  bool samples = true;
  config.Bool("do_sample", &samples);
  if (!samples) return status;
  const auto number = [&](const char* name, const char* option, double high, float* value) {
    double read = 0;
    if (config.Number(name, 0, high, &read) && !given.contains(option)) {
      *value = static_cast<float>(read);
    }
  };
  number("temperature", "--temp", 100, &sampling->temperature);
  number("top_p", "--top-p", 1, &sampling->top_p);
  number("min_p", "--min-p", 1, &sampling->min_p);
  number("repetition_penalty", "--repeat-penalty", 100, &sampling->repetition_penalty);
  int top_k = 0;
  if (config.Int("top_k", -1, 1 << 24, &top_k) && !given.contains("--top-k")) {
    sampling->top_k = std::max(top_k, 0);
  }
  return status;
}

}  // namespace foretoken
