#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "foretoken/kv_format.h"

// What the translation units of the instruction sets share: plain structs and constants only.
// Anything inline that the linker could merge would be compiled with one unit's instructions and
// run on machines without them.

namespace foretoken::cpu {

/// Outputs of a weight panel; float lanes of a `Vec`.
inline constexpr int kPanel = 16;
/// Inputs of one step of a dot product (an AMX tile's depth); widths are padded to a multiple.
inline constexpr int kChunk = 32;
/// Rows whose inputs are packed at once; longer batches are walked in parts of this size.
inline constexpr int kPackRows = 64;
/// Query rows (rows x heads of a group) of one attention task at most, unless one row has more.
inline constexpr int kQueryRows = 64;
/// Tokens whose noise is drawn together.
inline constexpr int kNoiseGroup = 128;
/// Gates and what they are multiplied with stay below, as backend.h says of kClampedSwish.
inline constexpr float kSwishLimit = 7;
/// Philox gives four draws a block.
inline constexpr int kNoiseBlocks = kNoiseGroup / 4;

constexpr int PadToChunk(int width) { return (width + kChunk - 1) / kChunk * kChunk; }

/// y [rows, outputs] (+)= x [rows, inputs] * weights^T for panels [panel_begin, panel_end); a row
/// of y begins `y_stride` behind the one before. Weights: BF16 panels of [inputs / 2][16
/// outputs][2], F32 panels of [inputs][16 outputs], inputs padded with zeros to a multiple of
/// kChunk.
struct MatMulTask {
  const void* weights;
  const float* x;
  float* y;
  std::ptrdiff_t y_stride;
  int rows;
  int inputs;
  int outputs;
  int panel_begin;
  int panel_end;
  bool add;
  void* scratch;  // 4 * kPackRows * PadToChunk(inputs) bytes, aligned to 64.
};

/// The state of one attention task: `queries` query rows of one sequence and key/value head.
struct AttentionState {
  int queries;
  int key_dim;
  int value_dim;
  float scale;        // The factor of scores, with log2(e): the softmax works in powers of two.
  float cap_inverse;  // 2 * AttentionRule::scale / score_cap, where there is a cap.
  // If not 0, scores become cap * tanh(score * cap_inverse / 2) before they are scaled.
  float cap;
  void* q;        // Packed queries, 4 * queries * PadToChunk(key_dim) bytes.
  float* out;     // [queries, PadToChunk(value_dim)], unnormalised.
  float* sums;    // [queries, 16] partial sums of the softmax.
  float* maxima;  // [queries], and room for 16 more.
  // A query sees lanes [0, anchors) and [hidden, seen) of the current chunk, at least one.
  int anchors;
  std::int32_t* hidden;  // [queries]
  std::int32_t* seen;    // [queries]
};

/// One layer's keys and values of one head for one block of 32 slots; without values, null, where
/// keys hold them. head_dim is padded to a multiple of kChunk.
/// BF16: keys 2 halves of [head_dim / 2][16 keys][2], values [16 key pairs][head_dim][2].
/// F32: keys [head_dim][32], values [32][head_dim].
/// Q8_0: [head_dim / 32] blocks of 32 x 32 integers of 8 bits and 32 scales (q8_kv_impl.h).
struct KvChunk {
  char* keys;
  char* values;
};

/// A token that may still be among the best, and its draw.
struct NoiseHit {
  std::int32_t token;
  std::uint32_t draw;
};

/// A scan of tokens [begin, end) for those whose score may reach `threshold`; `begin` is a multiple
/// of kNoiseGroup.
struct NoiseScan {
  const float* logits;
  const float* maxima;  // The largest of each kNoiseGroup logits, or null.
  int begin;
  int end;
  std::uint64_t seed;
  std::uint64_t position;
  float inverse_temperature;  // 0: no noise, scores are the logits.
  float threshold;
};

/// The operations that the format of keys and values decides.
struct AttentionKernels {
  void (*pack_query)(const AttentionState& state, int query, const float* from);
  /// Queries [begin, end) attend to the lanes of `chunk` that they see. `next`, if not null, is
  /// fetched from memory meanwhile.
  void (*attend)(const AttentionState& state, int begin, int end, KvChunk chunk, KvChunk next);
  /// Chunks without values have only keys stored, or copied.
  void (*store_kv)(const float* key, const float* value, int head_dim, KvChunk to, int lane);
  void (*copy_kv)(KvChunk from, int from_lane, int head_dim, KvChunk to, int to_lane);
  /// The first `value_dim` numbers of keys of `key_dim`, of all lanes, as a chunk has values.
  void (*values_of_keys)(const char* keys, int key_dim, int value_dim, char* values);
};

/// Added to squares before a key or a query of a gated delta layer is divided by their root.
inline constexpr float kUnitEpsilon = 1e-6F;

/// A row of a head of a gated delta layer, and the head's state before it [key_dim, value_dim].
struct DeltaRowTask {
  const float* state;
  const float* query;  // [key_dim]
  const float* key;
  float* value;  // [value_dim]: the row's value becomes what its key writes.
  float* out;    // [value_dim]: what its query reads.
  float decay;
  float write;
  int key_dim;
  int value_dim;
};

/// The operations of gated delta layers.
struct DeltaKernels {
  /// out [width] = y / (1 + exp(-y)), y = the sum of taps[t * stride + i] * inputs[t][i], t <
  /// count; inputs that are null are left out.
  void (*convolve)(const float* const* inputs, const float* taps, std::ptrdiff_t stride, int count,
                   int width, float* out);
  /// x = x / sqrt(sum(x^2) + kUnitEpsilon) * factor.
  void (*make_unit)(float factor, int width, float* x);
  void (*read_state)(const DeltaRowTask& task);
  /// state = decay * state + key [key_dim, 1] * written [1, value_dim].
  void (*apply_to_state)(const float* key, const float* written, float decay, int key_dim,
                         int value_dim, float* state);
};

/// What one instruction set offers.
struct Kernels {
  const char* name;  ///< "portable", "avx2", "avx512", "avx512_bf16", "amx".
  void (*matmul_bf16)(const MatMulTask& task);  ///< Weights in BF16, inputs rounded to it.
  void (*matmul_f32)(const MatMulTask& task);
  std::array<AttentionKernels, kKvFormats> attention;  ///< By KvFormat.
  void (*rms_norm)(const float* x, const float* gain, float epsilon, int rows, int width,
                   float* out);
  void (*layer_norm)(const float* x, const float* gain, const float* bias, float epsilon, int rows,
                     int width, float* out);
  void (*silu_mul)(const float* gate_up, int rows, int width, float* out);
  void (*gelu_mul)(const float* gate_up, int rows, int width, float* out);
  void (*sigmoid_mul)(const float* gate_up, int rows, int width, float* out);
  void (*clamped_swish_mul)(const float* gate_up, int rows, int width, float* out);
  /// out = softmax of `count` numbers; `out` may be `x`.
  void (*softmax)(const float* x, int count, float* out);
  /// out = 1 / (1 + exp(-x)) for `count` numbers; `out` may be `x`.
  void (*sigmoids)(const float* x, int count, float* out);
  /// y [rows, width]: row r is y[r] + x[r] / (1 + exp(-gates[r])).
  void (*add_gated)(const float* gates, const float* x, int rows, int width, float* y);
  /// out [width] = the sum of weights[i] * x[places[i]], i < count, x being [.., width].
  void (*weighted_sum)(const float* x, const std::int32_t* places, const float* weights, int count,
                       int width, float* out);
  /// x = cap * tanh(x / cap) for `count` numbers.
  void (*cap)(float cap, int count, float* x);
  /// Rotates the first `dims` numbers of `heads` adjacent heads in place by one position's cos and
  /// sin [dims / 2].
  void (*rotate)(float* x, int heads, int head_dim, int dims, const float* cos, const float* sin);
  /// Divides by the softmax sum and writes one query's output [value_dim].
  void (*finish)(const AttentionState& state, int query, float* to);
  /// Writes the hits in ascending order and returns how many; at most end - begin.
  int (*scan_noise)(const NoiseScan& scan, NoiseHit* hits);
  /// maxima[i] = the largest of x[kNoiseGroup * i ...], NaN left out; `count` of x in all.
  void (*group_maxima)(const float* x, int count, float* maxima);
  DeltaKernels delta;
  /// The draws of tokens [kNoiseGroup * group, kNoiseGroup * (group + 1)).
  void (*draw_group)(std::uint64_t seed, std::uint64_t position, std::uint32_t group,
                     std::uint32_t* draws);
  /// Reads `bytes` (a multiple of 4096) and returns something that depends on all of them.
  float (*read_stream)(const void* data, std::size_t bytes);
};

namespace portable {
const Kernels& Table();
}
namespace fused {
const Kernels& Table();
}
#if defined(__x86_64__)
namespace avx2 {
const Kernels& Table();
}
namespace avx512 {
const Kernels& Table();
}
namespace avx512_bf16 {
const Kernels& Table();
}
namespace amx {
const Kernels& Table();
}
#endif

}  // namespace foretoken::cpu
