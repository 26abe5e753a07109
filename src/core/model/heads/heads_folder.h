#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/config/config_fields.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// How the files of a drafter of heads call its tensors, and we do.
class HeadNames {
 public:
  void Add(const std::string& in_file, const std::string& ours);
  /// Both parts of a linear layer.
  void AddLinear(const std::string& in_file, const std::string& ours);

  /// Adds those tensors of `folder` that are of a layer of Llama: their names go on behind `prefix`
  /// as those of models behind the layer's number, which is `number` for us.
  void AddLayer(const Checkpoint& folder, const std::string& prefix, int number);

  /// Calls a folder's tensors as LoadWeights asks for them. One that is none of these is refused,
  /// as none of `what`.
  Status Rename(const std::string& what, Checkpoint* folder) const;

 private:
  using Names = std::map<std::string, std::string, std::less<>>;
  Names ours_;                           // By the file's.
  Names in_file_;                        // By ours.
  std::map<int, std::string> prefixes_;  // The beginnings of layers' names.
};

/// Refuses a config.json whose hidden_size or vocab_size, where it says any, is not the target's.
void CheckSizesOfTarget(const ModelConfig& target, ConfigFields* fields);

/// Refuses a folder whose tensor of this name, which is there, is not of logits for the target.
Status CheckLogits(const Checkpoint& folder, const std::string& name, const ModelConfig& target);

/// Says in `notes` where config.json counts otherwise than the tensors do: these count.
void NoteCount(const std::string& where, const char* name, int counted, ConfigFields* fields,
               std::vector<std::string>* notes);

/// What drafters of heads have in common with their target.
ModelConfig HeadsConfig(const ModelConfig& target, std::string_view architecture);

}  // namespace foretoken
