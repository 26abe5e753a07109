#include "weights/model_folder.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "base/read_file.h"
#include "base/sha256.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMaxJsonBytes = 16 << 20;

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<std::string> ReadText(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return InvalidInput(path.string() + ": is missing or not a regular file");
  }
  // One byte more than allowed tells a file that is too large, whatever its size was said to be.
  Result<std::string> text = ReadFile(path, kMaxJsonBytes + 1);
  if (!text.ok()) return InvalidInput(path.string() + ": cannot be opened");
  if (text->size() > kMaxJsonBytes) {
    return InvalidInput(path.string() + ": is larger than 16 MiB, which no such file should be");
  }
  return text;
}

// Of each tensor's bytes: that many pieces, evenly spread, the first and the last among them.
void AddSamples(std::string_view bytes, Sha256* sha) {
  constexpr std::size_t kPieces = 16;
  constexpr std::size_t kPieceBytes = 64;
  if (bytes.size() <= kPieces * kPieceBytes) {
    sha->Update(bytes);
    return;
  }
  const std::size_t last = bytes.size() - kPieceBytes;
  for (std::size_t i = 0; i < kPieces; ++i) {
    sha->Update(bytes.substr(last / (kPieces - 1) * i, kPieceBytes));
  }
  sha->Update(bytes.substr(last));
}

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

// Tensor name to shard file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

Result<WeightMap> ParseIndex(const std::string& text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return InvalidInput(where + ": has no object weight_map from tensor names to files");
  }
  WeightMap map;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return InvalidInput(
          fmt::format("{}: the shard of tensor '{}' is {}, which is not a plain file name", where,
                      Printable(tensor), Printable(shard.dump())));
    }
    map.emplace(tensor, shard.get<std::string>());
  }
  return map;
}

}  // namespace

const TensorView* ModelFolder::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::string ModelFolder::Fingerprint() const {
  Sha256 sha;
  sha.Update(config_json_);
  for (const auto& [name, tensor] : tensors_) {
    sha.Update(fmt::format("\n{} {} {}\n", name, FormatName(tensor.format), tensor.bytes()));
    AddSamples({reinterpret_cast<const char*>(tensor.data), tensor.bytes()}, &sha);
  }
  return sha.Hex();
}

Status ModelFolder::OpenSharded(const fs::path& index) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadText(index));
  FT_ASSIGN_OR_RETURN(const WeightMap map, ParseIndex(text, index.string()));
  std::map<std::string, TensorMap> opened;
  for (const auto& [tensor, shard] : map) {
    const auto [tensors, added] = opened.try_emplace(shard);
    if (added) {
      FT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(directory_ / shard));
      tensors->second = std::move(file.tensors);
      shards_.push_back(std::move(file.file));
    }
    const auto found = tensors->second.find(tensor);
    if (found == tensors->second.end()) {
      return InvalidInput(fmt::format("{}: lacks tensor '{}', which {} places there",
                                      (directory_ / shard).string(), Printable(tensor),
                                      index.filename().string()));
    }
    tensors_.emplace(tensor, found->second);
  }
  return {};
}

Status ModelFolder::OpenWeights() {
  const fs::path index = directory_ / "model.safetensors.index.json";
  if (Exists(index)) return OpenSharded(index);
  const fs::path single = directory_ / "model.safetensors";
  if (!Exists(single)) {
    return InvalidInput(directory_.string() +
                        ": has neither model.safetensors nor model.safetensors.index.json");
  }
  FT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(single));
  tensors_ = std::move(file.tensors);
  shards_.push_back(std::move(file.file));
  return {};
}

Result<ModelFolder> ModelFolder::Open(const fs::path& directory, bool need_weights) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return InvalidInput(directory.string() + ": is not a model directory (no such directory)");
  }
  ModelFolder folder;
  folder.directory_ = directory;
  FT_ASSIGN_OR_RETURN(folder.config_json_, ReadText(directory / "config.json"));
  const fs::path generation = directory / "generation_config.json";
  if (Exists(generation)) {
    FT_ASSIGN_OR_RETURN(folder.generation_config_json_, ReadText(generation));
  }
  if (need_weights) FT_RETURN_IF_ERROR(folder.OpenWeights());
  return folder;
}

}  // namespace foretoken
