#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "core/model/families/family.h"
#include "core/tensor/tensor_map.h"
#include "core/weights/gguf/gguf_metadata.h"

namespace foretoken {

/// What an adapter adds to one tensor of its model: scale * up * down.
struct AdapterFactors {
  TensorView down;           ///< [rank, inputs]: "lora_A".
  TensorView up;             ///< [outputs, rank]: "lora_B".
  double scale = 1;          ///< As the adapter was trained.
  std::string name_in_file;  ///< The name in the file of the tensor that is changed.
};

/// A low-rank adapter as it lies on disk, its tensors mapped read-only.
struct AdapterFile {
  std::filesystem::path path;
  /// By the model's own names of what they change, without ".weight": "layers.3.q".
  std::map<std::string, AdapterFactors, std::less<>> factors;
  /// Rows of queries and keys lie as Checkpoint::alternating_heads says.
  bool alternating_heads = false;
  std::vector<std::shared_ptr<const MappedFile>> files;  ///< What the factors borrow.
};

/// Opens an adapter of a model of `family`: a folder as PEFT saves it (adapter_config.json and
/// adapter_model.safetensors or .bin), or a GGUF file of type adapter. Refuses in one sentence what
/// changes a model in other ways than by the factors.
Result<AdapterFile> OpenAdapterFile(const std::filesystem::path& path, const Family& family);

/// The same of a folder's two files. `where` is what errors call the configuration.
Result<AdapterFile> PeftAdapter(const TensorMap& tensors, std::string_view config,
                                std::string_view where, const Family& family);

/// The same of a GGUF file's contents. `where` names the file in errors.
Result<AdapterFile> GgufAdapter(const TensorMap& tensors, const GgufMetadata& metadata,
                                std::string_view where, const Family& family);

}  // namespace foretoken
