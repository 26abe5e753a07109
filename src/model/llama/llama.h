#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "model/config/model_config.h"
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

/// Asked before every layer and before the lm head whether to give a pass up (the speculator's
/// outcome has arrived).
struct Interrupt {
  bool (*raised)(void* context) = nullptr;
  void* context = nullptr;
  bool Raised() const { return raised != nullptr && raised(context); }
};

/// What a model takes on a backend, to be known before loading it.
struct MemoryNeeds {
  std::size_t weight_bytes = 0;           ///< Packed weights, embedding table included.
  std::size_t kv_bytes_per_token = 0;     ///< Keys and values of one position in all layers.
  std::size_t kv_bytes_per_sequence = 0;  ///< Of one sequence of max_positions.
};
MemoryNeeds EstimateMemory(const ModelConfig& config, const Backend& backend);

/// A Llama-family decoder whose weights are packed for one backend, with the activations of one
/// pass as workspace. Not thread-safe; driven by the backend's owner thread.
class LlamaModel {
 public:
  static constexpr std::size_t kMaxRows = 256;

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

  /// Bytes of packed weights that a pass over one row reads: everything but the embedding table,
  /// which counts only where it is the lm head too.
  std::size_t weight_bytes() const;

  /// Makes room for passes of up to `rows` rows of which `wanted` want logits, so that none of them
  /// allocates.
  void Reserve(std::size_t rows, std::size_t wanted);

  /// One pass. Returns logits [wanted rows, vocabulary] in the order of the rows that want them,
  /// valid until the next call; or null values when `interrupt` was raised before some layer or
  /// the lm head (the KV of the batch's slots is then unspecified).
  ///
  /// A batch of more than kMaxRows rows runs as consecutive parts of at most that many. Since a
  /// row attends only to rows before it, and rows do not see each other otherwise, the parts give
  /// the same bits as one pass would. The workspace grows to the largest part and to the largest
  /// number of wanted rows seen; after that nothing is allocated.
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt = {});

 private:
  struct Weights;
  struct Workspace;
  LlamaModel(ModelConfig config, Backend* backend);

  void ForwardLayer(int layer, const BatchPlan& plan, KvStore& kv);
  bool ForwardPart(const ForwardBatch& batch, std::size_t begin, std::size_t count, KvStore& kv,
                   Interrupt interrupt, std::size_t done);

  ModelConfig config_;
  Backend* backend_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace foretoken
