#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/static_vector.h"
#include "core/backend/backend.h"
#include "core/model/config/model_config.h"
#include "foretoken/adapter.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// The keys and values of a model's layers.
inline KvShape KvShapeOf(const ModelConfig& config, std::int64_t blocks) {
  KvShape shape{.blocks = blocks};
  for (const LayerSpec& layer : config.layers) {
    const AttentionSpec& attention = layer.attention;
    KvLayer& kept = shape.layers.emplace_back();
    if (attention.kv_from < 0) {
      kept = {.kv_heads = attention.kv_heads,
              .head_dim = attention.head_dim,
              .latent = attention.latent.kv_rank,
              .windowed = attention.window > 0};
    }
    if (!layer.is_recurrent()) continue;
    shape.delta = layer.delta;
    ++shape.delta_layers;
  }
  return shape;
}

/// Positions that a row sees, its own included, in those layers that see the last ones only: the
/// widest window. 0: all layers see everything.
inline int WindowOf(const ModelConfig& config) {
  int window = 0;
  for (const LayerSpec& layer : config.layers) {
    window = std::max(window, layer.is_recurrent() ? kDeltaReach : layer.attention.window);
  }
  return window;
}

/// First positions of a text that rows see in layers with a window: the most of any.
inline int AnchorsOf(const ModelConfig& config) {
  int anchors = 0;
  for (const LayerSpec& layer : config.layers) anchors = std::max(anchors, layer.attention.anchors);
  return anchors;
}

/// The feature of a learned drafter's row: one of both. Where there is neither it is what
/// FeatureSpec::masked says, or else as if the target had kept zeros.
struct RowFeature {
  const BFloat16* kept = nullptr;  ///< [FeatureSpec::tap_width], by the target.
  const float* left = nullptr;     ///< [hidden], by the drafter's own row of the position before.
};

/// The tokens between the position of a row's feature and the row's own: so many of the batch's
/// path_tokens.
struct RowPath {
  std::int32_t begin = 0;
  std::int32_t count = 0;
};

/// One row of a pass and what is wanted of it.
struct ForwardRow {
  Token token = 0;
  RowPlace place;
  bool wants_logits = true;
  bool wants_state = false;  ///< What the row leaves, see Model::states.
  /// One of those that the model was made with; all rows of a sequence have the same.
  AdapterUse adapter = {};
  RowFeature feature = {};  ///< For models that have features (FeatureSpec).
  int block_left = 0;       ///< Rows of its block that come behind it in the batch.
  RowPath path = {};        ///< For models with sequential heads.
};

/// The input of one pass. Reused between passes so that steady state does not allocate. Rows of a
/// sequence are adjacent, in order of position along every path.
struct ForwardBatch {
  std::vector<ForwardRow> rows;
  std::vector<const std::int32_t*> block_tables;
  std::vector<std::int32_t> tail_slots;
  std::vector<Token> path_tokens;

  void Clear() {
    rows.clear();
    block_tables.clear();
    tail_slots.clear();
    path_tokens.clear();
  }
  /// The path of a row: these tokens.
  RowPath AddPath(std::span<const Token> tokens) {
    const auto begin = static_cast<std::int32_t>(path_tokens.size());
    path_tokens.insert(path_tokens.end(), tokens.begin(), tokens.end());
    return {begin, static_cast<std::int32_t>(tokens.size())};
  }
};

/// Asked before every layer and before the lm head whether to give a pass up (the speculator's
/// outcome has arrived).
struct Interrupt {
  bool (*raised)(void* context) = nullptr;
  void* context = nullptr;
  bool Raised() const { return raised != nullptr && raised(context); }
};

/// A position that a draft's latest pass says (ParallelSpec), with the tokens before it.
struct PathRow {
  std::int64_t first = 0;  ///< The row of the pass's logits that says the first position.
  /// From the token that the first position follows on to the one before this position, which a row
  /// for each token further on says.
  StaticVector<Token, kMaxProposal + 1> path;

  std::int64_t row() const { return first + std::ssize(path) - 1; }
};

/// What is said of such positions.
struct PathLogits {
  Logits logits;  ///< [rows, vocabulary]
  /// [rows]: the logarithm of the odds that a token of this distribution is accepted; null where
  /// the draft does not say.
  const float* confidence = nullptr;
};

/// Rows of a pass that are as many as a model computes at once, and enough for all its speed.
inline constexpr std::size_t kPassRows = 256;

/// A language model on one device: shared weights (`ModelWeights`) and the activations of one pass
/// as workspace. Borrows the backend. Not thread-safe; driven by the backend's owner thread.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  virtual Backend& backend() const = 0;
  /// The shape of a store for its passes, which keep `taps`.
  KvShape KvShapeFor(std::int64_t blocks, TapShape taps = {}) const {
    KvShape shape = KvShapeOf(config(), blocks);
    shape.taps = std::move(taps);
    return shape;
  }

  /// Bytes of packed weights that a pass over one row reads: everything but the embedding table,
  /// which counts only where it is the lm head too.
  virtual std::size_t weight_bytes() const = 0;

  /// How many adapters its rows may name.
  virtual int adapters() const { return 0; }

  /// Makes room for passes of up to `rows` rows of which `wanted` want logits, so that none of them
  /// allocates.
  virtual void Reserve(std::size_t rows, std::size_t wanted) = 0;

  /// One pass. Where the store has taps, they get the rows' states. Returns logits [wanted rows,
  /// vocabulary] in the order of the rows that want them, valid until the next call; or null values
  /// when `interrupt` was raised before some layer or the lm head (the KV of the batch's slots is
  /// then unspecified).
  ///
  /// Any number of rows gives the bits that each of them would have alone. The workspace grows to
  /// the largest pass seen; after that nothing is allocated.
  virtual Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) = 0;
  Logits Forward(const ForwardBatch& batch, KvStore& kv) { return Forward(batch, kv, {}); }

  /// The results of the latest pass of a draft for these positions, if its logits depend on the
  /// tokens before them (ModelConfig::markov); valid until the next call. Any number of rows gives
  /// the bits that each of them would have alone. Other models say nothing.
  virtual PathLogits Follow(std::span<const PathRow> /*rows*/) { return {}; }

  /// The states [wanted rows, hidden] of the latest pass, in the order of the rows that want them,
  /// valid until the next one: the final norm's output, which the lm head reads; of a learned
  /// drafter what its rows leave as features. Unspecified where the pass was interrupted.
  virtual const float* states() const = 0;
};

}  // namespace foretoken
