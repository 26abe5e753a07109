#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/hub/repository/model_name.h"

namespace foretoken {

/// The files of a repository that make up the model somebody named.
struct ModelFiles {
  std::vector<std::string> paths;
  std::string entry;  ///< The GGUF file to open, the first of a split one; empty: the folder.
  /// Whether more files beside these would change nothing: a cache that has them need not ask.
  bool certain = false;
};

/// Chooses among `paths`: by a quantisation's name or a file's, all parts of a split one; without
/// either Q4_K_M, else Q8_0 and so on, else the only one there is. What lies beside a model is not
/// taken for it: a target is none of the drafters that are there for it, and a draft is one of them
/// where there are any. A repository without GGUF files is a folder: configuration, weights, and a
/// tokenizer where there is one, since drafters that read states have none. Refuses in one
/// sentence, naming what there is, where nothing fits, several do or parts are missing.
Result<ModelFiles> ChooseFiles(std::span<const std::string> paths, const ModelName& name);

/// The GGUF files among `paths` that `name.part` calls, those of incomplete models as well.
std::vector<std::string> FilesCalled(std::span<const std::string> paths, const ModelName& name);

/// How a GGUF file's name calls its quantisation, in capitals: "Q4_K_M", "UD-Q4_K_XL", "BF16";
/// empty where it does not.
std::string QuantisationOf(std::string_view path);

}  // namespace foretoken
