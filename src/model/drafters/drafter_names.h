#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/families/family.h"
#include "weights/checkpoint.h"

namespace foretoken {

/// A tensor beside those of ordinary layers, without ".weight" or ".bias": our name and that of
/// folders, where it is the first layer's behind "layers.0.". A '*' at the end is a number.
struct DrafterTensor {
  std::string_view ours;
  std::string_view folder;
};

/// How folders call a drafter's tensors.
struct DrafterNames {
  std::string_view kind;  ///< As errors call the drafter.
  std::span<const DrafterTensor> tensors;
  const Family* family = nullptr;  ///< Whose layers it has.
  std::string_view prefix;         ///< Before all names.
  bool midlayer = false;           ///< The first layer is called "midlayer".

  /// Empty where there is none.
  std::string Ours(std::string_view in_folder) const;
  std::string InFolder(std::string_view ours) const;
};

/// Calls tensors by our names; "model." before the folder's counts for nothing. One that `names`
/// does not have might change what is computed, and is refused.
Status NameTensors(const DrafterNames& names, Checkpoint* folder);

}  // namespace foretoken
