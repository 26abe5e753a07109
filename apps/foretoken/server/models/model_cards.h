#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "apps/foretoken/server/models/model_registry.h"
#include "base/result.h"
#include "foretoken/model_card.h"

namespace foretoken::server {

/// What the files of a server's models say, each read when it is first asked for, which takes a
/// moment, and again when the model was loaded anew. Thread-safe.
class ModelCards {
 public:
  using Card = std::shared_ptr<const ModelCard>;

  /// `models` outlives it.
  explicit ModelCards(const ModelRegistry* models) : models_(models) {}

  /// What is wrong with files that cannot be read is not kept.
  Result<Card> Of(ModelRegistry::Index model);
  /// The same; an empty card where they cannot be read.
  Card Known(ModelRegistry::Index model);

 private:
  struct Kept {
    Card card;               // Null: not read yet.
    std::int64_t loads = 0;  // ModelStatus::loads then.
  };
  const ModelRegistry* const models_;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // As far as any was asked for.
};

}  // namespace foretoken::server
