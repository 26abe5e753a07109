#include "apps/foretoken/server/models/model_cards.h"

#include <utility>

namespace foretoken::server {

Result<ModelCards::Card> ModelCards::Of(ModelRegistry::Index model) {
  const std::lock_guard lock(mutex_);
  if (model >= kept_.size()) kept_.resize(model + 1);
  Kept& kept = kept_[model];
  const std::int64_t loads = models_->status(model).loads;
  if (kept.card != nullptr && kept.loads == loads) return kept.card;
  FT_ASSIGN_OR_RETURN(ModelCard card, ReadModelCard(models_->spec(model).source));
  kept = {std::make_shared<const ModelCard>(std::move(card)), loads};
  return kept.card;
}

ModelCards::Card ModelCards::Known(ModelRegistry::Index model) {
  const Result<Card> card = Of(model);
  return card.ok() ? *card : std::make_shared<const ModelCard>();
}

}  // namespace foretoken::server
