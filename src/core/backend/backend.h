#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/numbers/integers.h"
#include "base/result.h"
#include "core/backend/batch_plan.h"
#include "core/backend/delta/delta_rule.h"
#include "core/backend/taps.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor_view.h"
#include "foretoken/kv_format.h"
#include "foretoken/precision.h"
#include "foretoken/types.h"

namespace foretoken {

/// How a backend keeps and computes numbers.
struct Numerics {
  Precision precision;
  KvFormat kv;

  // NOLINTNEXTLINE(google-explicit-constructor): a precision by itself has its usual KV.
  Numerics(Precision rounding, std::optional<KvFormat> kept = std::nullopt)
      : precision(rounding), kv(kept.value_or(UsualKvFormat(rounding))) {}
};

/// Adjacent outputs of a matrix whose weights are of one format.
struct MatrixBand {
  WeightFormat format = WeightFormat::kF32;
  std::int64_t begin = 0;  ///< Outputs [begin, end).
  std::int64_t end = 0;
  std::size_t offset = 0;  ///< Where their weights begin, in bytes of the matrix's data.
};

/// A weight matrix [outputs, inputs] in the layout of the backend that packed it, or a stack of
/// `count` matrices of the same shape and formats, one behind the other. A borrowed one has no data
/// of its own.
struct Matrix {
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  std::vector<MatrixBand> bands;  ///< In order, without gaps; those of each matrix.
  Buffer data;
  int count = 1;
  std::vector<TensorView> borrowed;  ///< [count, parts of each]: the weights, where they lie.

  /// Bytes from a matrix of a stack to the next.
  std::size_t stride() const { return data.bytes() / Size(count); }
  /// The bytes of all weights, wherever they lie.
  std::size_t bytes() const;
  /// What makes one matrix of a borrowed stack.
  std::span<const TensorView> BorrowedParts(int index) const;
};

/// Adjacent rows [begin, end) of a product that meet one matrix of a stack.
struct RowGroup {
  int matrix = 0;
  int begin = 0;
  int end = 0;
};

/// The bands of stacked matrices of equal width, a format each: what `stored_as` makes of theirs.
/// Offsets are left out. Neighbours of one format are one band.
std::vector<MatrixBand> BandsOf(std::span<const TensorView> parts,
                                WeightFormat (*stored_as)(WeightFormat));

/// What a matrix of `format` is packed as under Precision::kPortable.
WeightFormat PortableFormat(WeightFormat format);

/// What a layer keeps of every position: nothing without heads, as where it has no attention or
/// reads what another layer keeps.
struct KvLayer {
  int kv_heads = 0;
  int head_dim = 0;
  /// So many leading numbers of a key are its value, and only the key is kept. 0: both are.
  int latent = 0;
  bool windowed = false;  ///< Its rows see the last positions, and anchors, only.

  bool operator==(const KvLayer&) const = default;
};

struct KvShape {
  std::vector<KvLayer> layers;
  std::int64_t blocks = 0;  ///< Blocks of kBlockSize slots each.
  /// Blocks of the windowed layers where they have fewer, which KvStore::recent_places assigns; 0:
  /// they have as many as the others, at the same places.
  std::int64_t recent_blocks = 0;
  DeltaShape delta;      ///< The shape of the model's gated delta layers, which count as windowed.
  int delta_layers = 0;  ///< How many gated delta layers there are.
  TapShape taps;         ///< What passes keep for drafters besides; usually nothing.

  bool KeptApart(const KvLayer& layer) const { return layer.windowed && recent_blocks > 0; }
  std::int64_t BlocksOf(const KvLayer& layer) const {
    return KeptApart(layer) ? recent_blocks : blocks;
  }
  std::int64_t DeltaBlocks() const { return recent_blocks > 0 ? recent_blocks : blocks; }
};

/// Keys and values of one model for `blocks * kBlockSize` slots, zero-initialised, in the layout
/// of the backend that allocated it.
struct KvStore {
  KvShape shape;
  Buffer keys;
  Buffer values;
  /// Where those of a layer begin, in bytes.
  struct Begin {
    std::size_t keys = 0;
    std::size_t values = 0;
  };
  std::vector<Begin> layers;
  /// [shape.blocks]: which of the recent blocks is a block's in windowed layers. Borrowed from who
  /// hands blocks out, and read by every operation.
  std::span<const std::int32_t> recent_places = {};
  DeltaStore delta = {};
  TapStore taps = {};

  /// Which of a layer's blocks is each block; null: itself.
  const std::int32_t* PlacesIn(int layer) const {
    const KvLayer& of = shape.layers[layer];
    return shape.KeptApart(of) ? recent_places.data() : nullptr;
  }
  /// Which of a gated delta layer's blocks is each block; null: itself.
  const std::int32_t* DeltaPlaces() const {
    return shape.recent_blocks > 0 ? recent_places.data() : nullptr;
  }
};

/// Where `slot` lies among the slots of a layer whose blocks have these `places` (PlacesIn).
inline std::int32_t SlotIn(const std::int32_t* places, std::int32_t slot) {
  return places == nullptr ? slot : places[slot / kBlockSize] * kBlockSize + slot % kBlockSize;
}

/// Copies the keys and values of slot `from` to slot `to`, in every layer.
struct KvMove {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

// What a store has besides keys and values, the same for every backend: what gated delta layers
// keep, and taps.

/// Bytes that they take.
std::size_t BytesBesideKv(const KvShape& shape);
/// Makes room for them in a store whose shape is set.
void AllocateBesideKv(KvStore* kv);
/// What Backend::CopyKv does to them.
void CopyBesideKv(KvStore& kv, std::span<const KvMove> moves);

/// cos and sin of every position and frequency, [positions, dims / 2] each, already scaled.
/// Rotation pairs element i of a head with i + dims / 2 (the Hugging Face convention) and leaves
/// those from `dims` on as they are.
struct RopeTable {
  int dims = 0;
  std::int64_t positions = 0;
  Buffer cos;
  Buffer sin;
  Buffer query_scales;  ///< [positions]: what rotated queries are multiplied by; empty: nothing.
};

/// How a norm scales numbers: over the root of their mean square, or, after their mean is taken
/// away, over the root of their variance.
enum class NormKind { kRms, kLayer };

/// A norm without a bias of equally wide parts of rows.
struct PartsNorm {
  NormKind kind = NormKind::kRms;
  float epsilon = 0;
  const float* gain = nullptr;  ///< [width], or [parts, width]:
  bool gain_of_each = false;    ///< where each part has a gain of its own.
};

/// Attention geometry of a layer. A qkv row is [heads + 2 * kv_heads, head_dim]: all query heads,
/// then keys, then values. Query head h reads key/value head h / (heads / kv_heads).
struct HeadShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  /// As KvLayer::latent: rows have no values, and of queries and keys what follows these numbers is
  /// rotated.
  int latent = 0;
  /// Rows have neither keys nor values: they read what an earlier layer keeps.
  bool queries_only = false;

  int value_dim() const { return latent > 0 ? latent : head_dim; }
  /// Heads that a row has of its own, one behind the other.
  int rotated_heads() const { return heads + (queries_only ? 0 : kv_heads); }
  std::int64_t row_width() const {
    const int values = queries_only || latent > 0 ? 0 : kv_heads;
    return std::int64_t{rotated_heads() + values} * head_dim;
  }
};

/// Which positions a row sees in a layer, and how much of each.
struct AttentionRule {
  double scale = 1;     ///< The factor of scores, usually 1 / sqrt(head_dim).
  int window = 0;       ///< Positions seen, the row's own included; 0: all.
  int anchors = 0;      ///< How many of the text's first positions are seen besides the window.
  float score_cap = 0;  ///< Scores become cap * tanh(score / cap); 0: they stay.
  /// [heads]: a score of each head that takes its share of the softmax and has no value; or null.
  const float* sinks = nullptr;

  /// Where the window of a row at `position` begins.
  std::int32_t WindowBegin(std::int32_t position) const {
    return window == 0 ? 0 : std::max(0, position - window + 1);
  }
};

/// What is done to gates: x / (1 + exp(-x)), or GELU with the tanh form of its
/// cumulative normal, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). kClampedSwish is
/// x / (1 + exp(-1.702 x)) of gates of kSwishLimit at most, times one more than `up`, which is
/// kept between -kSwishLimit and kSwishLimit. kSigmoid is 1 / (1 + exp(-x)).
enum class Activation { kSilu, kGeluTanh, kClampedSwish, kSigmoid };
inline constexpr float kSwishLimit = 7;

/// How rows choose among experts: by what they score, the largest first, equal ones by lower index.
struct Routing {
  /// What the experts of a row weigh: the softmax of its scores, taken over all experts or over
  /// those that are chosen; or 1 / (1 + exp(-score)), by which rows then choose as well, as they
  /// are or over the sum of those that are chosen.
  enum class Weights { kSoftmaxOfAll, kSoftmaxOfChosen, kSigmoids, kSigmoidsOfSum };
  /// What a group of experts scores: as its best expert, or as the sum of its two best.
  enum class GroupScore { kLargest, kTwoLargest };
  int experts = 0;
  int chosen = 0;  ///< How many experts each row chooses, at most as many as its groups have.
  Weights weights = Weights::kSoftmaxOfChosen;
  float factor = 1;  ///< What weights are multiplied by.
  /// Experts are in so many adjacent groups of equal size; a row chooses among those of the best.
  int groups = 1;
  int chosen_groups = 1;
  GroupScore group_score = GroupScore::kLargest;

  bool operator==(const Routing&) const = default;
};

/// Logits of a row that are summed up by their maximum.
inline constexpr int kLogitGroup = 128;

/// Rows of logits [rows, vocabulary] and, where the product that computed them noted it, the
/// largest of every kLogitGroup of them [rows, ceil(vocabulary / kLogitGroup)], NaN left out. A
/// choice that knows the maxima reads a few of the logits instead of all.
struct Logits {
  const float* values = nullptr;
  const float* maxima = nullptr;

  Logits() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a plain row of logits is one without maxima.
  Logits(const float* logits, const float* largest = nullptr) : values(logits), maxima(largest) {}

  static constexpr std::int64_t Groups(std::int64_t vocabulary) {
    return (vocabulary + kLogitGroup - 1) / kLogitGroup;
  }
  Logits Row(std::int64_t row, std::int64_t vocabulary) const {
    return {values + row * vocabulary,
            maxima == nullptr ? nullptr : maxima + row * Groups(vocabulary)};
  }
};

/// Names the noise of one position: g_i = -log(-log(u_i)), u_i = Philox(seed, position, i).
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
};

/// A token and its noisy score z_i / T + g_i (z_i itself at T = 0).
struct Candidate {
  Token token = -1;
  double score = 0;
};

/// Tensors and operations on one device. `reference` defines truth in plain loops; every other
/// backend passes the same conformance test. All activations are float32, row-major and dense.
///
/// Batch invariance: in every operation the result for a row depends only on that
/// row's inputs, never on how many rows are computed with it, on where its KV lies or on how many
/// threads work.
///
/// Not thread-safe: one owner thread drives a backend (it is worker 0 of the device's pool).
/// Operations do not allocate after their first use at the largest row count.
class Backend {
 public:
  virtual ~Backend() = default;

  /// "reference", "cpu/avx512_bf16", ...
  virtual std::string_view name() const = 0;
  virtual Precision precision() const = 0;
  virtual KvFormat kv_format() const = 0;
  /// Names how Pack lays weights out, precision included: backends of one layout read each other's.
  virtual std::string_view layout() const = 0;

  /// Packs matrices of equal width, one below the other, each [outputs_i, inputs]. Any dtype.
  Matrix Pack(std::span<const TensorView> parts);

  /// Room for `count` matrices like the one that `parts` make.
  virtual Matrix MakeStack(std::span<const TensorView> parts, int count) = 0;
  /// Packs matrix `index` of a stack; `parts` have the shapes and formats that it was made for.
  virtual void PackInto(std::span<const TensorView> parts, int index, Matrix* stack) = 0;

  virtual KvStore AllocateKv(const KvShape& shape) = 0;
  /// Bytes that AllocateKv would take, to be known before allocating.
  virtual std::size_t KvBytes(const KvShape& shape) const = 0;

  /// out [tokens, inputs] = rows of the table.
  virtual void Embed(const Matrix& table, std::span<const Token> tokens, float* out) = 0;

  /// out [rows, width] = x / sqrt(mean(x^2) + epsilon) * gain. `out` may be `x`.
  virtual void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width,
                       float* out) = 0;

  /// out [rows, width] = (x - mean(x)) / sqrt(variance(x) + epsilon) * gain + bias. `bias` may be
  /// null, `out` may be `x`.
  virtual void LayerNorm(const float* x, const float* gain, const float* bias, float epsilon,
                         int rows, int width, float* out) = 0;

  /// RmsNorm or LayerNorm of `parts` adjacent stretches of `width` in each of `rows` rows, in
  /// place; a row begins `stride` behind the one before.
  virtual void NormParts(const PartsNorm& norm, int rows, std::int64_t stride, int parts, int width,
                         float* x) = 0;

  /// y [rows, width] = x in every row: what a product with a bias is added to.
  virtual void FillRows(const float* x, int rows, std::int64_t width, float* y) = 0;

  /// x = x * factor, for `count` numbers.
  virtual void Scale(float factor, std::int64_t count, float* x) = 0;

  /// y = y + x, for `count` numbers.
  virtual void Add(const float* x, std::int64_t count, float* y) = 0;

  /// y [rows, width]: row r is y[r] + x[r] / (1 + exp(-gates[r])).
  virtual void AddGatedRows(const float* gates, const float* x, int rows, int width, float* y) = 0;

  /// x = cap * tanh(x / cap) for rows of logits and their maxima.
  virtual void CapLogits(float cap, int rows, std::int64_t vocabulary, float* logits,
                         float* maxima) = 0;

  /// y [rows, outputs] = x [rows, inputs] * weights^T. `y` does not overlap `x`.
  virtual void MatMul(const Matrix& weights, const float* x, int rows, float* y) = 0;

  /// MatMul that also sets maxima [rows, Logits::Groups(outputs)] as Logits describes them.
  virtual void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                            float* maxima) = 0;

  /// y += x * weights^T: the residual add of a block's output projection.
  virtual void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) = 0;

  /// y [rows, outputs] = x [rows, inputs] times the matrix of each row's group, transposed.
  /// `groups` are all rows, in order; the matrices that they name are read once. `bias`
  /// [matrices, outputs] is added unless it is null.
  virtual void MatMulGroups(const Matrix& stack, std::span<const RowGroup> groups,
                            const float* bias, const float* x, float* y) = 0;

  /// The experts of each of `rows` rows by its scores [rows, experts], in the order of choice, and
  /// what they weigh; both [rows, chosen]. `choice_bias` [experts], unless it is null, is added to
  /// what rows choose by and changes no weight.
  virtual void Route(const Routing& routing, const float* scores, const float* choice_bias,
                     int rows, std::int32_t* experts, float* weights) = 0;

  /// out [rows, width]: row r is the sum of weights[r, i] * x[places[r, i]] for i < count, added
  /// up in that order; x is [.., width].
  virtual void WeightedSums(const float* x, const std::int32_t* places, const float* weights,
                            int rows, int count, int width, float* out) = 0;

  /// Rotates queries and keys of `qkv` [rows, row_width] in place and scales queries, unless `rope`
  /// is null, and writes the keys and values that rows have to each row's slot in `layer` of `kv`.
  virtual void RotateAndStore(const RopeTable* rope, const BatchPlan& plan, const HeadShape& heads,
                              int layer, float* qkv, KvStore& kv) = 0;

  /// out [rows, heads * value_dim]: softmax(q k * scale) v over the positions that each row sees of
  /// 0..position, walked in logical order in chunks of kBlockSize with an online softmax. `layer`
  /// is the one that keeps the keys and values.
  virtual void Attention(const BatchPlan& plan, const HeadShape& heads, const AttentionRule& rule,
                         int layer, const float* qkv, const KvStore& kv, float* out) = 0;

  /// Gated delta layer number `layer` of the store's: rows x [rows, row_width] give
  /// out [rows, 2 * value_width], their gates and then what their heads read of their states. Keeps
  /// in each row's slot what rows behind it need.
  ///
  /// With q, k, v the convolved query, key and value of a head, and S its state before the row:
  /// written = write * (v - decay * k S), read = decay * q S + (q k) written, and the state becomes
  /// decay * S + k written.
  virtual void DeltaRule(const BatchPlan& plan, const DeltaWeights& weights, int layer,
                         const float* x, KvStore& kv, float* out) = 0;

  /// out [rows, width] = activation(gate) * up, where gate_up is [rows, 2 * width]: gate then up.
  virtual void GatedMul(Activation activation, const float* gate_up, int rows, int width,
                        float* out) = 0;

  /// Moves in order; a slot may be a target after it was a source.
  virtual void CopyKv(KvStore& kv, std::span<const KvMove> moves) = 0;

  /// Fills `best` with the tokens of highest noisy score, descending, ties by lower id, and
  /// returns how many there are (fewer than best.size() only where logits are -inf). Temperature 0
  /// means no noise. Exact: every backend of a machine returns what plain loops in double return.
  virtual std::size_t NoisyTop(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                               std::span<Candidate> best) = 0;

  /// A stack of `count` matrices for MatMulGroups whose weights stay where they lie: `parts`
  /// [count, parts of each], which outlive it, alike in shape and format from matrix to matrix.
  /// Products have the bits of those with a packed stack; they take longer, and of a mapped file
  /// only the matrices that rows meet are read. A backend that cannot do so packs them.
  virtual Matrix Borrow(std::vector<TensorView> parts, int count);
};

}  // namespace foretoken
