#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/testing/quantized_product.h"

// What the reference backends do alike: nothing of it depends on how numbers are rounded, but for
// rotations, which have one order of operations everywhere.

namespace foretoken::reference {

/// Where position `p` of a row's path lies in a layer whose blocks have these `places`.
std::int32_t SlotAt(const BatchPlan& plan, const RowPlace& place, const std::int32_t* places,
                    std::int32_t p);

float RoundToBf16(float value);

/// Writes a head's key or value as it is kept, `count` floats.
using KeepHead = void (*)(const float* head, int count, float* kept);
void KeepRounded(const float* head, int count, float* kept);
void KeepExactly(const float* head, int count, float* kept);

/// A head's key or value in blocks, as if zeros followed.
std::vector<InputBlock> QuantizeHead(const float* head, int count);

/// The largest of each kLogitGroup of `rows` rows of logits.
void GroupMaxima(const float* logits, int rows, std::int64_t outputs, float* maxima);

/// What the reference backends share: they keep KV in floats, [slots, kv_heads, head_dim] of each
/// layer, and work on one thread.
class ReferenceBase : public Backend {
 public:
  /// `keep` makes of a head's key or value what is kept of it.
  ReferenceBase(Numerics numerics, KeepHead keep) : numerics_(numerics), keep_(keep) {}

  std::string_view name() const override { return "reference"; }
  Precision precision() const override { return numerics_.precision; }
  KvFormat kv_format() const override { return numerics_.kv; }

  std::size_t KvBytes(const KvShape& shape) const override;
  KvStore AllocateKv(const KvShape& shape) override;
  void CopyKv(KvStore& kv, std::span<const KvMove> moves) override;

  void NormParts(const PartsNorm& norm, int rows, std::int64_t stride, int parts, int width,
                 float* x) override;
  void FillRows(const float* x, int rows, std::int64_t width, float* y) override;
  void Scale(float factor, std::int64_t count, float* x) override;
  void Add(const float* x, std::int64_t count, float* y) override;
  void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                    float* maxima) override;
  void RotateAndStore(const RopeTable* rope, const BatchPlan& plan, const HeadShape& heads,
                      int layer, float* qkv, KvStore& kv) override;
  void Attention(const BatchPlan& plan, const HeadShape& heads, const AttentionRule& rule,
                 int layer, const float* qkv, const KvStore& kv, float* out) override;
  /// The state before a row is made of the positions on its path, from the first on, each time
  /// anew, in every precision.
  void DeltaRule(const BatchPlan& plan, const DeltaWeights& weights, int layer, const float* x,
                 KvStore& kv, float* out) override;
  std::size_t NoisyTop(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                       std::span<Candidate> best) override;

 protected:
  /// Writes what one head of a row attends to, [value_dim]. Keys and values of the head begin at
  /// `keys` and `values` and lie `stride` apart from slot to slot.
  virtual void AttendHead(const BatchPlan& plan, const RowPlace& place, const std::int32_t* places,
                          const AttentionRule& rule, int head, const float* query,
                          const float* keys, const float* values, std::int64_t stride,
                          const HeadShape& heads, float* out) = 0;

  const Numerics numerics_;

 private:
  KeepHead keep_;
};

}  // namespace foretoken::reference
