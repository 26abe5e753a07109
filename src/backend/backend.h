#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/batch_plan.h"
#include "base/result.h"
#include "foretoken/kv_format.h"
#include "foretoken/precision.h"
#include "foretoken/types.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

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
  std::size_t offset = 0;  ///< Of their weights, in bytes of the matrix's data.
};

/// A weight matrix [outputs, inputs] in the layout of the backend that packed it.
struct Matrix {
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  std::vector<MatrixBand> bands;  ///< In order, without gaps.
  Buffer data;
};

/// The bands of stacked matrices of equal width, a format each: what `stored_as` makes of theirs.
/// Offsets are left out. Neighbours of one format are one band.
std::vector<MatrixBand> BandsOf(std::span<const TensorView> parts,
                                WeightFormat (*stored_as)(WeightFormat));

/// What a matrix of `format` is packed as under Precision::kPortable.
WeightFormat PortableFormat(WeightFormat format);

struct KvShape {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  std::int64_t blocks = 0;  ///< Of kBlockSize slots each.
};

/// Keys and values of one model for `blocks * kBlockSize` slots, zero-initialised, in the layout
/// of the backend that allocated it.
struct KvStore {
  KvShape shape;
  Buffer keys;
  Buffer values;
};

/// Copies the keys and values of slot `from` to slot `to`, in every layer.
struct KvMove {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// cos and sin of every position and frequency, [positions, head_dim / 2] each, already scaled.
/// Rotation pairs element i with i + head_dim / 2 (the Hugging Face convention).
struct RopeTable {
  int head_dim = 0;
  std::int64_t positions = 0;
  Buffer cos;
  Buffer sin;
};

/// Attention geometry of a layer. A qkv row is [heads + 2 * kv_heads, head_dim]: all query heads,
/// then keys, then values. Query head h reads key/value head h / (heads / kv_heads).
struct HeadShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  std::int64_t row_width() const { return std::int64_t{heads + 2 * kv_heads} * head_dim; }
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

  /// Packs matrices of equal width, stacked by rows, each [outputs_i, inputs]. Any dtype.
  virtual Matrix Pack(std::span<const TensorView> parts) = 0;

  virtual KvStore AllocateKv(const KvShape& shape) = 0;
  /// Bytes that AllocateKv would take, to be known before allocating.
  virtual std::size_t KvBytes(const KvShape& shape) const = 0;

  /// out [tokens, inputs] = rows of the table.
  virtual void Embed(const Matrix& table, std::span<const Token> tokens, float* out) = 0;

  /// out [rows, width] = x / sqrt(mean(x^2) + epsilon) * gain. `out` may be `x`.
  virtual void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width,
                       float* out) = 0;

  /// y [rows, outputs] = x [rows, inputs] * weights^T. `y` does not overlap `x`.
  virtual void MatMul(const Matrix& weights, const float* x, int rows, float* y) = 0;

  /// MatMul that also sets maxima [rows, Logits::Groups(outputs)] as Logits describes them.
  virtual void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                            float* maxima) = 0;

  /// y += x * weights^T: the residual add of a block's output projection.
  virtual void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) = 0;

  /// Rotates queries and keys of `qkv` [rows, row_width] in place and writes keys and values to
  /// each row's slot in `layer` of `kv`.
  virtual void RotateAndStore(const RopeTable& rope, const BatchPlan& plan, const HeadShape& heads,
                              int layer, float* qkv, KvStore& kv) = 0;

  /// out [rows, heads * head_dim]: softmax(q k / sqrt(head_dim)) v over positions 0..position of
  /// each row, walked in logical order in chunks of kBlockSize with an online softmax.
  virtual void Attention(const BatchPlan& plan, const HeadShape& heads, int layer, const float* qkv,
                         const KvStore& kv, float* out) = 0;

  /// out [rows, width] = silu(gate) * up, where gate_up is [rows, 2 * width]: gate then up.
  virtual void SiluMul(const float* gate_up, int rows, int width, float* out) = 0;

  /// Moves in order; a slot may be a target after it was a source.
  virtual void CopyKv(KvStore& kv, std::span<const KvMove> moves) = 0;

  /// Fills `best` with the tokens of highest noisy score, descending, ties by lower id, and
  /// returns how many there are (fewer than best.size() only where logits are -inf). Temperature 0
  /// means no noise. Exact: every backend of a machine returns what plain loops in double return.
  virtual std::size_t NoisyTop(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                               std::span<Candidate> best) = 0;
};

}  // namespace foretoken
