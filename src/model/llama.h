#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "model/model_config.h"
#include "weights/model_folder.h"

namespace foretoken {

/// One row of a pass and whether its logits are wanted.
struct ForwardRow {
  Token token = 0;
  RowPlace place;
  bool wants_logits = true;
};

/// The input of one pass. Reused between passes so that steady state does not allocate. Rows of a
/// sequence are adjacent, in order of position along every path.
struct ForwardBatch {
  std::vector<ForwardRow> rows;
  std::vector<const std::int32_t*> block_tables;
  std::vector<std::int32_t> tail_slots;

  void Clear() {
    rows.clear();
    block_tables.clear();
    tail_slots.clear();
  }
};

/// Asked between layers whether to give a pass up (the speculator's outcome has arrived).
struct Interrupt {
  bool (*raised)(void* context) = nullptr;
  void* context = nullptr;
  bool Raised() const { return raised != nullptr && raised(context); }
};

/// A Llama-family decoder whose weights are packed for one backend, with the activations of one
/// pass as workspace. Not thread-safe; driven by the backend's owner thread.
class LlamaModel {
 public:
  /// Checks that every tensor is present with the shape the config implies, then packs.
  static Result<std::unique_ptr<LlamaModel>> Load(const ModelFolder& folder,
                                                  const ModelConfig& config, Backend* backend);

  /// Random weights of a real shape, for timing studies; the same for the same seed.
  static std::unique_ptr<LlamaModel> Synthetic(const ModelConfig& config, std::uint64_t seed,
                                               Backend* backend);
  ~LlamaModel();

  const ModelConfig& config() const { return config_; }
  Backend& backend() const { return *backend_; }
  KvShape KvShapeFor(std::int64_t blocks) const;

  /// Bytes of packed weights that a pass reads (the embedding table counts once if tied).
  std::size_t weight_bytes() const;

  /// One pass. Returns logits [wanted rows, vocabulary] in the order of the rows that want them,
  /// valid until the next call; or nullptr when `interrupt` was raised between two layers (the KV
  /// of the batch's slots is then unspecified). `row` counts at most max_rows per call inside: a
  /// longer batch is processed in parts that together give the same bits.
  const float* Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt = {});

 private:
  struct Weights;
  struct Workspace;
  LlamaModel(ModelConfig config, Backend* backend);

  ModelConfig config_;
  Backend* backend_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace foretoken
