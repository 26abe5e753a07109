#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace foretoken {

/// Plain loops on one thread with float64 accumulation: what every other backend is compared with.
/// Weights and KV are kept as float32; under kBF16 their values, the inputs of matrix products and
/// the attention probabilities are rounded to bfloat16, which is where a fast backend rounds too.
///
/// Matrices are [outputs, inputs] row-major; KV is [layers, slots, kv_heads, head_dim].
class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(Precision precision) : precision_(precision) {}

  std::string_view name() const override { return "reference"; }
  Precision precision() const override { return precision_; }
  std::string_view layout() const override {
    return precision_ == Precision::kBF16 ? "rows of values of bf16" : "rows of f32";
  }

  Matrix Pack(std::span<const TensorView> parts) override;
  KvStore AllocateKv(const KvShape& shape) override;
  std::size_t KvBytes(const KvShape& shape) const override;

  void Embed(const Matrix& table, std::span<const Token> tokens, float* out) override;
  void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width,
               float* out) override;
  void MatMul(const Matrix& weights, const float* x, int rows, float* y) override;
  void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                    float* maxima) override;
  void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) override;
  void RotateAndStore(const RopeTable& rope, const BatchPlan& plan, const HeadShape& heads,
                      int layer, float* qkv, KvStore& kv) override;
  void Attention(const BatchPlan& plan, const HeadShape& heads, int layer, const float* qkv,
                 const KvStore& kv, float* out) override;
  void SiluMul(const float* gate_up, int rows, int width, float* out) override;
  void CopyKv(KvStore& kv, std::span<const KvMove> moves) override;
  std::size_t NoisyTop(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                       std::span<Candidate> best) override;

 private:
  float Round(float value) const {
    return precision_ == Precision::kBF16 ? BFloat16ToFloat(FloatToBFloat16(value)) : value;
  }
  const float* RoundRow(const float* x, std::int64_t width);
  void AttendHead(const BatchPlan& plan, const RowPlace& place, const float* query,
                  const float* keys, const float* values, std::int64_t stride, int head_dim,
                  float* out);

  Precision precision_;
  std::vector<float> rounded_;    // One matrix input row, or one query.
  std::vector<double> weighted_;  // The running sum of one head's values.
};

/// Plain loops in float32/float64, single-threaded. Rounds as `precision` says.
std::unique_ptr<Backend> MakeReferenceBackend(Precision precision);

}  // namespace foretoken
