#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/families/family.h"
#include "core/tensor/tensor_map.h"
#include "core/weights/other_tensor.h"

namespace foretoken {

/// What a tensor of a model's files is for.
enum class ModelPart {
  kText,        ///< The decoder that is computed here.
  kVision,      ///< Makes inputs of images and films.
  kAudio,       ///< Makes inputs of sound, or sound of outputs.
  kPrediction,  ///< Layers that guess tokens behind the next one (MTP, NextN).
  kUnknown,     ///< Belongs to a layer of the decoder, which it might change.
  kBeside,      ///< As little known, but belongs to no layer.
};

/// The part that a tensor is of, by its name in a folder or a GGUF file of a model of so many
/// layers.
ModelPart PartOf(const Family& family, bool gguf, int layers, std::string_view name_in_file);

/// A folder's name of a tensor without what folders of models that see and hear besides put before
/// the names of their text's tensors.
std::string WithoutTextPrefix(std::string_view name_in_folder);

/// Tensors of a model's files that are not used.
struct UnusedPart {
  ModelPart part;
  std::vector<std::string> tensors = {};  ///< As the files call them; at least one.
  std::size_t bytes = 0;

  /// The first of them that is of a layer behind the model's last which joins no state with a
  /// token, as layers that guess do: of an ordinary one, which a wrong number of layers left out.
  /// Empty: there is none.
  std::string OfOrdinaryLayer(bool gguf) const;
  /// "the vision tower (435 tensors, 812.0 MB) is not used: images are refused", say.
  std::string Sentence() const;
};

/// What there is beside the text model, in the order of ModelPart. `others` are of other dtypes
/// than weights are.
std::vector<UnusedPart> UnusedParts(const Family& family, bool gguf, int layers,
                                    const TensorMap& tensors, const OtherTensorMap& others);

}  // namespace foretoken
