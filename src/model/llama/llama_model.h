#pragma once

#include <memory>

#include "model/llama/llama_weights.h"
#include "model/model.h"

namespace foretoken {

/// A Llama-family decoder on one device.
class LlamaModel final : public Model {
 public:
  LlamaModel(std::shared_ptr<const LlamaWeights> weights, Backend* backend);
  ~LlamaModel() override;

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return *backend_; }
  std::size_t weight_bytes() const override { return weights_->bytes_of_pass(); }
  void Reserve(std::size_t rows, std::size_t wanted) override;

  /// A batch of more than kMaxRows rows runs as consecutive parts of at most that many. Since a
  /// row attends only to rows before it, and rows do not see each other otherwise, the parts give
  /// the same bits as one pass would.
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override;

 private:
  struct Workspace;

  void ForwardLayer(int layer, const BatchPlan& plan, KvStore& kv);
  bool ForwardPart(const ForwardBatch& batch, std::size_t begin, std::size_t count, KvStore& kv,
                   Interrupt interrupt, std::size_t done);

  std::shared_ptr<const LlamaWeights> weights_;
  const ModelConfig& config_;  // The weights'.
  Backend* backend_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace foretoken
