#include "core/weights/model_folder.h"

#include <system_error>
#include <utility>

#include "base/files/read_file.h"
#include "base/text/printable.h"
#include "core/weights/arrange/mxfp4_pairs.h"
#include "core/weights/safetensors.h"
#include "core/weights/torch/torch_file.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

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

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

// Tensor name to shard file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

Result<WeightMap> ParseIndex(const std::string& text, const std::string& where) {
  const Json json = Json::Parse(text);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return InvalidInput(where + ": has no object weight_map from tensor names to files");
  }
  WeightMap map;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.text())) {
      return Invalid("{}: the shard of tensor '{}' is {}, which is not a plain file name", where,
                     Printable(tensor), Printable(shard.dump()));
    }
    map.emplace(tensor, shard.get<std::string>());
  }
  return map;
}

// A form of a folder's weights: one file, or those that an index names, where there may be one.
struct WeightsForm {
  const char* index;
  const char* single;
  TensorFile::Parse parse;
};
// The first that there is counts. Heads of Medusa and Hydra have a file without an index.
constexpr WeightsForm kForms[] = {
    {"model.safetensors.index.json", "model.safetensors", ParseSafetensors},
    {"pytorch_model.bin.index.json", "pytorch_model.bin", ParseTorchFile},
    {nullptr, "medusa_lm_head.safetensors", ParseSafetensors},
    {nullptr, "medusa_lm_head.pt", ParseTorchFile},
    {nullptr, "hydra_lm_head.pt", ParseTorchFile}};

Result<FileTensors> ReadShards(const fs::path& index, TensorFile::Parse parse,
                               Checkpoint* checkpoint) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadText(index));
  FT_ASSIGN_OR_RETURN(const WeightMap map, ParseIndex(text, index.string()));
  std::map<std::string, FileTensors> opened;
  FileTensors all;
  for (const auto& [tensor, shard] : map) {
    const fs::path path = checkpoint->path / shard;
    const auto [holds, added] = opened.try_emplace(shard);
    if (added) {
      FT_ASSIGN_OR_RETURN(TensorFile file, TensorFile::Open(path, parse));
      holds->second = std::move(file.holds);
      checkpoint->files.push_back(std::move(file.file));
    }
    if (!holds->second.Move(tensor, &all)) {
      return Invalid("{}: lacks tensor '{}', which {} places there", path.string(),
                     Printable(tensor), index.filename().string());
    }
  }
  return all;
}

Result<FileTensors> ReadWeightsFile(const WeightsForm& form, Checkpoint* checkpoint) {
  FT_ASSIGN_OR_RETURN(TensorFile file,
                      TensorFile::Open(checkpoint->path / form.single, form.parse));
  checkpoint->files.push_back(std::move(file.file));
  return std::move(file.holds);
}

Result<FileTensors> ReadWeights(Checkpoint* checkpoint) {
  for (const WeightsForm& form : kForms) {
    if (form.index != nullptr && Exists(checkpoint->path / form.index)) {
      return ReadShards(checkpoint->path / form.index, form.parse, checkpoint);
    }
    if (Exists(checkpoint->path / form.single)) return ReadWeightsFile(form, checkpoint);
  }
  return InvalidInput(checkpoint->path.string() +
                      ": has neither model.safetensors nor pytorch_model.bin, and no index of "
                      "several such files");
}

}  // namespace

Result<Checkpoint> ReadModelFolder(const fs::path& directory) {
  Checkpoint checkpoint{.path = directory};
  const fs::path config = directory / "config.json";
  FT_ASSIGN_OR_RETURN(checkpoint.config.json, ReadText(config));
  checkpoint.config.where = config.string();
  const fs::path generation = directory / "generation_config.json";
  if (Exists(generation)) {
    FT_ASSIGN_OR_RETURN(checkpoint.generation_config.json, ReadText(generation));
    checkpoint.generation_config.where = generation.string();
  }
  FT_ASSIGN_OR_RETURN(FileTensors weights, ReadWeights(&checkpoint));
  checkpoint.tensors = std::move(weights.tensors);
  checkpoint.others = std::move(weights.others);
  FT_RETURN_IF_ERROR(ArrangePairs(weights.bytes, &checkpoint));
  return checkpoint;
}

Result<std::optional<Checkpoint>> ReadHeadsBeside(const fs::path& directory) {
  for (const WeightsForm& form : kForms) {
    if (!std::string_view(form.single).starts_with("medusa") || !Exists(directory / form.single)) {
      continue;
    }
    Checkpoint checkpoint{.path = directory};
    checkpoint.config.where = (directory / form.single).string();
    FT_ASSIGN_OR_RETURN(FileTensors weights, ReadWeightsFile(form, &checkpoint));
    checkpoint.tensors = std::move(weights.tensors);
    checkpoint.others = std::move(weights.others);
    return std::optional(std::move(checkpoint));
  }
  return std::optional<Checkpoint>();
}

}  // namespace foretoken
