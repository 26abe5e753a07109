#pragma once

#include <string>

namespace foretoken {

/// A low-rank adapter (LoRA) that is loaded with a model.
struct AdapterSource {
  std::string name;  ///< By which requests ask for it; no other adapter of the model has it.
  std::string path;  ///< The path of a folder as PEFT saves it, or of a GGUF file.
  float scale = 1;   ///< What it adds is multiplied by this where a request says nothing else.
};

/// The adapter that a sequence is computed with.
struct AdapterUse {
  int index = -1;   ///< Its place among LoadOptions::adapters; -1: none, the model as it is.
  float scale = 1;  ///< As that of AdapterSource; finite.

  bool operator==(const AdapterUse&) const = default;
};

}  // namespace foretoken
