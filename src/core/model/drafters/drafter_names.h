#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/model/families/family.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// A tensor beside those of ordinary layers, without ".weight" or ".bias": our name, that of
/// folders, where it is the first layer's behind "layers.0." (or behind the prefix, where that is a
/// layer's), and that of GGUF files, of one layer behind its number. A '*' at the end is a number.
/// Files of a kind whose name is empty do not have it.
struct DrafterTensor {
  std::string_view ours;
  std::string_view folder;
  std::string_view gguf = "";
};

/// How files call a drafter's tensors.
struct DrafterNames {
  std::string_view kind;  ///< As errors call the drafter.
  std::span<const DrafterTensor> tensors;
  const Family* family = nullptr;  ///< Whose layers it has.
  std::string prefix;      ///< Before all names; of GGUF files "blk." and the layer's number.
  bool midlayer = false;   ///< The first layer is called "midlayer".
  bool gguf = false;       ///< They are of a GGUF file.
  bool one_layer = false;  ///< The prefix is a layer's: names are its own.

  /// Empty where there is none.
  std::string Ours(std::string_view in_file) const;
  std::string InFile(std::string_view ours) const;
};

/// Calls tensors by our names; "model." before a folder's counts for nothing. One that `names`
/// does not have might change what is computed, and is refused.
Status NameTensors(const DrafterNames& names, Checkpoint* folder);

}  // namespace foretoken
