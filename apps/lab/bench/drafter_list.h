#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/mode.h"

namespace foretoken {

/// A drafter to compare with others.
struct ListedDrafter {
  std::string name;          ///< As reports call it; no two have the same.
  std::string draft;         ///< What `--draft` would be given; empty where no model drafts.
  std::optional<Mode> mode;  ///< Then the drafter's mode.
};

/// The drafters of "demo-draft,eagle=heads/eagle3,self:mtp,ngram": each a mode whose drafter is no
/// model, or what `--draft` takes, which is called by its file's or folder's name unless a name
/// stands before it.
Result<std::vector<ListedDrafter>> ParseDrafters(std::string_view text);

}  // namespace foretoken
