#include "apps/lab/bench/drafter_list.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/foretoken/options/options.h"

namespace foretoken {
namespace {

// "eagle3" of "heads/eagle3/", "mtp" of "self:mtp", "tiny.Q4_0" of "tiny.Q4_0.gguf".
std::string DraftName(std::string_view draft) {
  if (draft.starts_with(kSelf)) return std::string(draft.substr(kSelf.size()));
  std::filesystem::path path(draft);
  if (!path.has_filename()) path = path.parent_path();
  if (path.extension() == ".gguf") path.replace_extension();
  return path.filename().string();
}

Result<ListedDrafter> ParseDrafter(const std::string& item) {
  if (const auto mode = ParseMode(item); mode.ok()) {
    if (mode->drafts() && !NeedsDraft(*mode) && !mode->planned()) {
      return ListedDrafter{item, {}, *mode};
    }
    return Invalid(
        "--drafters {}: is a mode, and none with a drafter of its own; write what drafts, such as "
        "a model's folder or ngram, and the modes with --modes",
        item);
  }
  const std::size_t equals = item.find('=');
  // "self:exit=2" has no name before it.
  if (equals == std::string::npos || item.find_first_of("/:") < equals) {
    return ListedDrafter{DraftName(item), item, {}};
  }
  if (equals == 0 || equals + 1 == item.size()) {
    return Invalid("--drafters {}: write NAME=PATH, or PATH alone", item);
  }
  return ListedDrafter{item.substr(0, equals), item.substr(equals + 1), {}};
}

}  // namespace

Result<std::vector<ListedDrafter>> ParseDrafters(std::string_view text) {
  std::vector<ListedDrafter> drafters;
  for (const std::string& item : SplitList(text)) {
    FT_ASSIGN_OR_RETURN(ListedDrafter drafter, ParseDrafter(item));
    const auto same = [&](const ListedDrafter& other) { return other.name == drafter.name; };
    if (std::ranges::any_of(drafters, same)) {
      return Invalid("--drafters names two that are called {}: write NAME=PATH for one of them",
                     drafter.name);
    }
    drafters.push_back(std::move(drafter));
  }
  if (drafters.empty()) return InvalidInput("--drafters is given no drafter");
  return drafters;
}

}  // namespace foretoken
