#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/safetensors.h"

namespace foretoken {

/// A Hugging Face model folder: its JSON files as text and its tensors, mapped read-only from one
/// or several safetensors shards. Everything is validated before use. Movable; tensor views live
/// as long as the folder.
class ModelFolder {
 public:
  /// Opens and validates config.json (present, at most 16 MiB) and the shards named by
  /// model.safetensors.index.json, or model.safetensors. Without `need_weights` only JSON is read.
  static Result<ModelFolder> Open(const std::filesystem::path& directory, bool need_weights = true);
  ModelFolder(ModelFolder&&) = default;
  ModelFolder& operator=(ModelFolder&&) = default;

  const std::filesystem::path& directory() const { return directory_; }
  const std::string& config_json() const { return config_json_; }
  /// Empty where the file is absent.
  const std::string& generation_config_json() const { return generation_config_json_; }

  /// nullptr where there is no tensor of that name.
  const TensorView* Find(std::string_view name) const;
  const TensorMap& tensors() const { return tensors_; }

  /// Tells models apart: SHA-256, in hexadecimal digits, of the configuration, of every tensor's
  /// name and type, and of a sample of its bytes.
  std::string Fingerprint() const;

 private:
  ModelFolder() = default;
  Status OpenWeights();
  Status OpenSharded(const std::filesystem::path& index);

  std::filesystem::path directory_;
  std::string config_json_;
  std::string generation_config_json_;
  std::vector<std::shared_ptr<const MappedFile>> shards_;
  TensorMap tensors_;
};

}  // namespace foretoken
