#include "core/model/drafters/own_drafter.h"

#include <utility>

#include "base/text/printable.h"
#include "core/model/drafters/prediction_layer.h"
#include "core/model/heads/read_heads.h"

namespace foretoken {

Result<LearnedDraft> ReadDrafter(std::string_view own, Checkpoint files, const Checkpoint& target,
                                 const ModelConfig& target_config) {
  if (own.empty()) return ReadLearnedDraft(std::move(files), target, target_config);
  if (own == "mtp") {
    const auto read = HasExtraHeads(files) ? ReadExtraHeads : ReadPredictionLayer;
    return read(std::move(files), target, target_config);
  }
  if (own == "medusa") return ReadOwnMedusa(std::move(files), target_config);
  return Invalid("{}: what drafts in a model's files is mtp or medusa, not '{}'",
                 files.path.string(), Printable(own));
}

}  // namespace foretoken
