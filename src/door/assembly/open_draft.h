#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/engine.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// What a draft is to draft for. Borrows the config.
struct DraftedTarget {
  const ModelConfig& config;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< Null for synthetic ones.
  std::string path;                            ///< Where its files lie; empty for synthetic ones.
};

/// Opens a draft and makes it one that reads and says the target's tokens: any model (FitDraft), or
/// a learned drafter, which reads states of this target and has its tokenizer, embeddings and,
/// where the file has none, its head. `by_text` as DraftOptions has it (FitByText). With a `window`
/// its attention sees that much (LimitWindow). Says in `notices`, which may be null, what a
/// user should know.
Result<OpenedModel> OpenDraftFor(const DraftedTarget& target, const ModelSource& source,
                                 std::optional<bool> by_text,
                                 std::optional<DraftWindow> window = {},
                                 std::vector<std::string>* notices = nullptr);

/// Whether a draft, and what its tokens are translated by (may be null), can only be opened with
/// the target's files at hand.
bool NeedsTargetFiles(const ModelConfig& draft, const Translation* translation);

}  // namespace foretoken
