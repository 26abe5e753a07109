#include "core/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "core/backend/cpu/attention/attention.h"
#include "core/backend/cpu/delta/delta_heads.h"
#include "core/backend/cpu/noisy_top.h"
#include "core/backend/cpu/products/matrix_products.h"
#include "core/backend/cpu/products/packed_matrix.h"
#include "core/backend/cpu/share_work.h"
#include "core/backend/routing.h"

namespace foretoken {
namespace {

using cpu::kPanel;
using cpu::KvLayout;
using cpu::PanelsOf;

constexpr std::size_t kUsualRows = 256;

struct RowRange {
  int begin = 0;
  int end = 0;
};

// What each precision makes of a format.
WeightFormat AsBF16(WeightFormat) { return WeightFormat::kBF16; }
WeightFormat AsF32(WeightFormat) { return WeightFormat::kF32; }

class CpuBackend final : public Backend {
 public:
  // `quant` is null but for kPortable.
  CpuBackend(const cpu::Kernels& kernels, const cpu::QuantKernels* quant, ThreadPool* pool,
             Numerics numerics)
      : name_(quant == nullptr ? fmt::format("cpu/{}", kernels.name)
                               : fmt::format("cpu/{}, portable bits", quant->name)),
        kernels_(kernels),
        products_(kernels, quant, pool),
        pool_(pool),
        precision_(numerics.precision),
        kv_format_(numerics.kv),
        delta_(kernels.delta, pool == nullptr ? 1 : pool->size()) {
    const int workers = pool == nullptr ? 1 : pool->size();
    ranges_.reserve(kUsualRows);
    for (int i = 0; i < workers; ++i) attention_.emplace_back(kernels_, kv_format_);
  }

  std::string_view name() const override { return name_; }
  Precision precision() const override { return precision_; }
  KvFormat kv_format() const override { return kv_format_; }
  std::string_view layout() const override {
    return precision_ == Precision::kBF16  ? "panels of bf16"
           : precision_ == Precision::kF32 ? "panels of f32"
                                           : "panels as stored";
  }

  Matrix MakeStack(std::span<const TensorView> parts, int count) override {
    return cpu::MakeMatrix(parts, count, StoredAs());
  }

  Matrix Borrow(std::vector<TensorView> parts, int count) override {
    return cpu::BorrowMatrix(std::move(parts), count, StoredAs());
  }

  void PackInto(std::span<const TensorView> parts, int index, Matrix* stack) override {
    Share(PanelsOf(*stack), stack->outputs * stack->inputs,
          [&](int, std::int64_t begin, std::int64_t end) {
            cpu::PackPanels(parts, begin, end, index, stack);
          });
  }

  KvStore AllocateKv(const KvShape& shape) override {
    const auto begin = [&](std::size_t layer) { return cpu::BeginOf(shape, layer, kv_format_); };
    const KvStore::Begin end = begin(shape.layers.size());
    KvStore kv{shape, Buffer(end.keys), Buffer(end.values), {}};
    for (std::size_t i = 0; i < shape.layers.size(); ++i) kv.layers.push_back(begin(i));
    AllocateBesideKv(&kv);
    return kv;
  }

  std::size_t KvBytes(const KvShape& shape) const override {
    const KvStore::Begin end = cpu::BeginOf(shape, shape.layers.size(), kv_format_);
    return end.keys + end.values + BytesBesideKv(shape);
  }

  void Embed(const Matrix& table, std::span<const Token> tokens, float* out) override {
    for (const Token token : tokens) {
      cpu::ReadOutput(table, token, out);
      out += table.inputs;
    }
  }

  void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width,
               float* out) override {
    Share(rows, std::int64_t{rows} * width, [&](int, std::int64_t begin, std::int64_t end) {
      kernels_.rms_norm(x + begin * width, gain, epsilon, static_cast<int>(end - begin), width,
                        out + begin * width);
    });
  }

  void MatMul(const Matrix& weights, const float* x, int rows, float* y) override {
    products_.MatMul(weights, x, rows, /*add=*/false, y);
  }

  void NormParts(const PartsNorm& norm, int rows, std::int64_t stride, int parts, int width,
                 float* x) override {
    // As many parts at once as have one gain.
    const int together = norm.gain_of_each ? 1 : parts;
    Share(rows, std::int64_t{rows} * parts * width, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        for (int part = 0; part < parts; part += together) {
          float* const at = x + row * stride + std::int64_t{part} * width;
          const float* const gain = norm.gain + std::int64_t{part} * width;
          if (norm.kind == NormKind::kRms) {
            kernels_.rms_norm(at, gain, norm.epsilon, together, width, at);
          } else {
            kernels_.layer_norm(at, gain, nullptr, norm.epsilon, together, width, at);
          }
        }
      }
    });
  }

  void LayerNorm(const float* x, const float* gain, const float* bias, float epsilon, int rows,
                 int width, float* out) override {
    Share(rows, std::int64_t{rows} * width * 2, [&](int, std::int64_t begin, std::int64_t end) {
      kernels_.layer_norm(x + begin * width, gain, bias, epsilon, static_cast<int>(end - begin),
                          width, out + begin * width);
    });
  }

  void FillRows(const float* x, int rows, std::int64_t width, float* y) override {
    for (int row = 0; row < rows; ++row) std::copy_n(x, width, y + row * width);
  }

  void Scale(float factor, std::int64_t count, float* x) override {
    for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
  }

  void Add(const float* x, std::int64_t count, float* y) override {
    for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
  }

  void AddGatedRows(const float* gates, const float* x, int rows, int width, float* y) override {
    Share(rows, std::int64_t{rows} * width, [&](int, std::int64_t begin, std::int64_t end) {
      kernels_.add_gated(gates + begin, x + begin * width, static_cast<int>(end - begin), width,
                         y + begin * width);
    });
  }

  void CapLogits(float cap, int rows, std::int64_t vocabulary, float* logits,
                 float* maxima) override {
    const std::int64_t groups = Logits::Groups(vocabulary);
    Share(groups, 4 * vocabulary * rows, [&](int, std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * kLogitGroup;
      const int count = std::min(vocabulary, end * kLogitGroup) - first;
      for (int row = 0; row < rows; ++row) {
        kernels_.cap(cap, count, logits + row * vocabulary + first);
        kernels_.group_maxima(logits + row * vocabulary + first, count,
                              maxima + row * groups + begin);
      }
    });
  }

  void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) override {
    products_.MatMul(weights, x, rows, /*add=*/true, y);
  }

  void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                    float* maxima) override {
    products_.MatMulMaxima(weights, x, rows, y, maxima);
  }

  void MatMulGroups(const Matrix& stack, std::span<const RowGroup> groups, const float* bias,
                    const float* x, float* y) override {
    products_.MatMulGroups(stack, groups, bias, x, y);
  }

  void Route(const Routing& routing, const float* scores, const float* choice_bias, int rows,
             std::int32_t* experts, float* weights) override {
    router_.Route({kernels_.softmax, kernels_.sigmoids}, routing, scores, choice_bias, rows,
                  experts, weights);
  }

  void WeightedSums(const float* x, const std::int32_t* places, const float* weights, int rows,
                    int count, int width, float* out) override {
    Share(rows, std::int64_t{rows} * count * width, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        kernels_.weighted_sum(x, places + row * count, weights + row * count, count, width,
                              out + row * width);
      }
    });
  }

  void RotateAndStore(const RopeTable* rope, const BatchPlan& plan, const HeadShape& heads,
                      int layer, float* qkv, KvStore& kv) override {
    const std::int64_t rows = plan.rows.size();
    const KvLayout layout(kv, layer, kv_format_);
    const cpu::AttentionKernels& attention = AttentionOps();
    Share(rows, rows * heads.row_width() * 2, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const RowPlace& place = plan.rows[row];
        float* const q = qkv + row * heads.row_width();
        if (rope != nullptr) {
          const std::int64_t at = std::int64_t{place.position} * (rope->dims / 2);
          kernels_.rotate(q + heads.latent, heads.rotated_heads(), heads.head_dim, rope->dims,
                          rope->cos.as<float>() + at, rope->sin.as<float>() + at);
        }
        if (rope != nullptr && rope->query_scales.bytes() > 0) {
          Scale(rope->query_scales.as<float>()[place.position],
                std::int64_t{heads.heads} * heads.head_dim, q);
        }
        const float* const k = q + std::int64_t{heads.heads} * heads.head_dim;
        const float* const v = k + std::int64_t{heads.kv_heads} * heads.head_dim;
        for (int head = 0; !heads.queries_only && head < heads.kv_heads; ++head) {
          attention.store_kv(k + std::int64_t{head} * heads.head_dim,
                             v + std::int64_t{head} * heads.head_dim, heads.head_dim,
                             layout.ChunkOf(place.slot, head), place.slot % kBlockSize);
        }
      }
    });
  }

  void Attention(const BatchPlan& plan, const HeadShape& heads, const AttentionRule& rule,
                 int layer, const float* qkv, const KvStore& kv, float* out) override {
    const int rows = plan.rows.size();
    const int group = heads.heads / heads.kv_heads;
    const int rows_at_once = std::max(1, cpu::kQueryRows / group);
    std::int64_t cost = 0;
    ranges_.clear();
    for (int row = 0; row < rows; ++row) {
      const RowPlace& place = plan.rows[row];
      const int seen = place.position + 1;
      const int most = rule.window == 0 ? seen : std::min(seen, rule.window + rule.anchors);
      cost += std::int64_t{most} * heads.heads * heads.head_dim;
      const bool fits = !ranges_.empty() && row - ranges_.back().begin < rows_at_once;
      if (fits && plan.rows[row - 1].sequence == place.sequence) {
        ranges_.back().end = row + 1;
      } else {
        ranges_.push_back({row, row + 1});
      }
    }
    const cpu::AttentionCall call{plan, heads, rule, qkv, {kv, layer, kv_format_}, out};
    const auto tasks = std::ssize(ranges_) * heads.kv_heads;
    // Which worker meets which task is chance, and one of the pool could not say that there is no
    // room: each gets it here, for the largest task.
    for (cpu::AttentionWorker& worker : attention_) worker.Grow(rows_at_once * group, heads);
    const auto run = [&](int worker, std::int64_t task) {
      const RowRange range = ranges_[task / heads.kv_heads];
      attention_[worker].Run(call, range.begin, range.end, static_cast<int>(task % heads.kv_heads));
    };
    if (pool_ == nullptr || pool_->size() == 1 || tasks < 2 || cost < cpu::kWorthSharing) {
      for (std::int64_t task = 0; task < tasks; ++task) run(0, task);
      return;
    }
    // One by one, since contexts differ in length.
    pool_->Share(tasks, 1, [&](int worker, std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) run(worker, task);
    });
  }

  void DeltaRule(const BatchPlan& plan, const DeltaWeights& weights, int layer, const float* x,
                 KvStore& kv, float* out) override {
    const cpu::DeltaCall call{plan, kv.DeltaPlaces(), weights, layer, x, kv.delta, out};
    Share(kv.delta.shape.key_heads, delta_.Plan(call),
          [&](int worker, std::int64_t begin, std::int64_t end) {
            delta_.Run(call, worker, begin, end);
          });
  }

  void GatedMul(Activation activation, const float* gate_up, int rows, int width,
                float* out) override {
    static_assert(kSwishLimit == cpu::kSwishLimit);
    auto* const multiply = activation == Activation::kSilu       ? kernels_.silu_mul
                           : activation == Activation::kGeluTanh ? kernels_.gelu_mul
                           : activation == Activation::kSigmoid  ? kernels_.sigmoid_mul
                                                                 : kernels_.clamped_swish_mul;
    Share(rows, std::int64_t{rows} * width * 2, [&](int, std::int64_t begin, std::int64_t end) {
      multiply(gate_up + begin * 2 * width, static_cast<int>(end - begin), width,
               out + begin * width);
    });
  }

  void CopyKv(KvStore& kv, std::span<const KvMove> moves) override {
    CopyBesideKv(kv, moves);
    const cpu::AttentionKernels& attention = AttentionOps();
    for (int layer = 0; layer < std::ssize(kv.shape.layers); ++layer) {
      const KvLayout layout(kv, layer, kv_format_);
      for (const KvMove& move : moves) {
        for (int head = 0; head < layout.shape.kv_heads; ++head) {
          attention.copy_kv(layout.ChunkOf(move.from, head), move.from % kBlockSize,
                            layout.shape.head_dim, layout.ChunkOf(move.to, head),
                            move.to % kBlockSize);
        }
      }
    }
  }

  std::size_t NoisyTop(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                       std::span<Candidate> best) override {
    return cpu::NoisyTop(kernels_, logits, vocabulary, temperature, noise, best, &hits_);
  }

 private:
  // What the precision makes of a format.
  auto StoredAs() const -> WeightFormat (*)(WeightFormat) {
    switch (precision_) {
      case Precision::kBF16:
        return AsBF16;
      case Precision::kF32:
        return AsF32;
      case Precision::kPortable:
        return PortableFormat;
    }
    return PortableFormat;
  }

  template <typename Work>
  void Share(std::int64_t count, std::int64_t cost, const Work& work) {
    cpu::ShareWork(pool_, count, cost, work);
  }

  const cpu::AttentionKernels& AttentionOps() const {
    return kernels_.attention[static_cast<std::size_t>(kv_format_)];
  }

  std::string name_;
  const cpu::Kernels& kernels_;
  cpu::MatrixProducts products_;
  ThreadPool* pool_;
  Precision precision_;
  KvFormat kv_format_;
  std::vector<cpu::AttentionWorker> attention_;
  cpu::DeltaPass delta_;
  std::vector<RowRange> ranges_;
  Router router_;
  std::vector<cpu::NoiseHit> hits_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const cpu::Kernels& kernels, ThreadPool* pool,
                                        Numerics numerics) {
  FT_CHECK(numerics.precision != Precision::kPortable);
  return std::make_unique<CpuBackend>(kernels, nullptr, pool, numerics);
}

std::unique_ptr<Backend> MakePortableCpuBackend(const cpu::Kernels& kernels,
                                                const cpu::QuantKernels& quant, ThreadPool* pool,
                                                KvFormat kv) {
  return std::make_unique<CpuBackend>(kernels, &quant, pool, Numerics(Precision::kPortable, kv));
}

}  // namespace foretoken
