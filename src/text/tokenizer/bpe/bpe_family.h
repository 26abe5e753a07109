#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace foretoken {

/// What the tokenizer.json of a family of models says of how text becomes words. A model file has
/// only the family's name (tokenizer.ggml.pre).
struct BpeFamily {
  Json pre_tokenizer;
  bool nfc = false;
  bool whole_words_first = false;
  /// Whether texts begin with the beginning-of-sequence token where a file says nothing of it.
  bool adds_bos = false;
};

/// Nothing where no family has that name.
std::optional<BpeFamily> FindBpeFamily(std::string_view name);

/// One name of each family, the one that llama.cpp's own files have.
std::vector<std::string_view> BpeFamilies();

/// All names, with spaces between them.
std::string BpeFamilyNames();

}  // namespace foretoken
