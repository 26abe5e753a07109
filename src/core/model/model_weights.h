#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "core/backend/backend.h"
#include "core/model/adapter/adapter_set.h"
#include "core/model/config/model_config.h"
#include "core/model/model.h"
#include "core/weights/checkpoint.h"
#include "foretoken/model.h"

namespace foretoken {

/// The packed weights of a model: made once, never changed, shared by all models over them.
/// Thread-safe.
class ModelWeights {
 public:
  virtual ~ModelWeights() = default;

  virtual const ModelConfig& config() const = 0;

  /// A model over these weights on `backend`, whose layout must be that of the backend that packed
  /// them and the adapters, which may be null. It keeps both alive and borrows the backend.
  virtual std::unique_ptr<Model> MakeModel(Backend* backend,
                                           std::shared_ptr<const AdapterSet> adapters) const = 0;
  std::unique_ptr<Model> MakeModel(Backend* backend) const { return MakeModel(backend, nullptr); }

  /// The same weights, in the same memory, for a model of this description: this one's, but that
  /// sub-layers may be left out (Without), attention may see less and positions may be fewer. What
  /// it returns keeps the weights alive.
  virtual std::shared_ptr<const ModelWeights> Part(const ModelConfig& config) const = 0;
};

/// Checks that every tensor is present with the shape that the config implies, and that experts
/// that are to stay in the file lie there as they are multiplied; packs nothing.
Status CheckWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                    ExpertsPlace experts = ExpertsPlace::kMemory);

/// Checks as CheckWeights does, then packs as `backend` does, whose owner thread calls. Neither
/// checkpoint nor backend is needed afterwards. Quantised tensors are packed as the numbers that
/// they stand for.
Result<std::shared_ptr<const ModelWeights>> LoadWeights(
    const Checkpoint& checkpoint, const ModelConfig& config, Backend* backend,
    const LoadProgress& progress = {}, ExpertsPlace experts = ExpertsPlace::kMemory);

/// Random weights of a real shape, for timing studies; the same for the same seed.
std::shared_ptr<const ModelWeights> SyntheticWeights(const ModelConfig& config, std::uint64_t seed,
                                                     Backend* backend);

}  // namespace foretoken
