#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "kv/kv_cache.h"
#include "model/llama.h"
#include "sampling/sampler.h"

namespace foretoken {

/// A draft model with its KV: what SD's drafter and SSD's speculator share. Borrows the model.
/// Belongs to one thread.
struct DraftModel {
  /// Room for `max_sequences` of `max_context` tokens each, plus `scratch` slots per sequence.
  DraftModel(LlamaModel* llama_model, int max_sequences, int context, int scratch);

  LlamaModel* model;
  std::int32_t max_context;  ///< At most the model's own limit.
  KvCache pool;
  KvStore kv;
  Sampler sampler;
  ForwardBatch batch;
};

/// One sequence as a draft model sees it: a path of tokens (the committed ones, then the proposal
/// under verification) and how many of them have their KV on the trunk.
class DraftTrunk {
 public:
  /// Makes the path `committed` followed by `proposal`; KV stays valid up to the first token that
  /// differs from the old path.
  void SetPath(std::span<const Token> committed, std::span<const Token> proposal);
  /// The same where `tokens` extend the committed part, without naming that part again.
  void Extend(std::span<const Token> tokens, std::span<const Token> proposal);

  std::span<const Token> path() const { return path_; }
  std::int32_t committed() const { return committed_; }
  /// The position of node 0: the last committed token.
  std::int32_t root() const { return committed_ - 1; }
  std::int32_t length() const { return static_cast<std::int32_t>(path_.size()); }

  /// Adds rows for path positions [kv_length, end) to `batch`, wanting logits from position
  /// `logits_from` on. False when the pool has no room.
  bool AppendRows(DraftModel& draft, std::int32_t end, std::int32_t logits_from,
                  ForwardBatch* batch);

  SequenceKv kv;
  std::int32_t kv_length = 0;  ///< Path positions below it have their KV in place.

 private:
  std::vector<Token> path_;
  std::int32_t committed_ = 0;
};

}  // namespace foretoken
