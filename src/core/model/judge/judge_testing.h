#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "core/weights/write_safetensors.h"

namespace foretoken {

/// Writes the folder of a head as foretoken_train does.
inline void WriteJudge(const std::filesystem::path& folder, const std::vector<float>& weight,
                       float bias, const std::string& tokenizer = "") {
  std::filesystem::create_directories(folder);
  const std::vector<SafetensorsEntry> entries = {
      {"judge.weight", "F32", {std::ssize(weight)}, std::as_bytes(std::span(weight))},
      {"judge.bias", "F32", {1}, std::as_bytes(std::span(&bias, 1))}};
  FT_CHECK(WriteSafetensors(folder / "model.safetensors", {{"format", "pt"}}, entries).ok());
  std::ofstream(folder / "config.json")
      << fmt::format(R"({{"model_type": "judge", "hidden_size": {}, "tokenizer": "{}"}})",
                     weight.size(), tokenizer);
}

}  // namespace foretoken
