#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/packed_matrix.h"
#include "backend/noise.h"
#include "tensor/half.h"

namespace foretoken {
namespace {

using cpu::kPanel;
using cpu::KvLayout;
using cpu::PadToChunk;
using cpu::PanelsOf;

// Work worth sharing among threads, in elements touched: a few microseconds, against the one that
// waking spinning workers costs.
constexpr std::int64_t kWorthSharing = 200'000;

constexpr std::size_t kUsualRows = 256;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct RowRange {
  int begin = 0;
  int end = 0;
};

// What each precision makes of a format.
WeightFormat AsBF16(WeightFormat) { return WeightFormat::kBF16; }
WeightFormat AsF32(WeightFormat) { return WeightFormat::kF32; }

bool HasQuantized(const Matrix& weights) {
  return std::ranges::any_of(weights.bands,
                             [](const MatrixBand& band) { return IsQuantized(band.format); });
}

// Of a product, as kWorthSharing counts it.
std::int64_t CostOf(const Matrix& weights, int rows) {
  return weights.outputs * weights.inputs * (8 + rows) / 8;
}

// Inserts unless `best` is full of better ones. Tokens come in ascending order, so an equal score
// ranks behind.
void Insert(Candidate candidate, std::span<Candidate> best, std::size_t* count) {
  if (*count == best.size()) {
    if (!(candidate.score > best[*count - 1].score)) return;
    --*count;
  }
  std::size_t at = (*count)++;
  for (; at > 0 && candidate.score > best[at - 1].score; --at) best[at] = best[at - 1];
  best[at] = candidate;
}

// A score that `count` tokens reach, so that no token below it is among the best: that of the
// likeliest of one group, the one with the largest logit if that is known. -inf where there are too
// few.
double FirstBound(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                  std::span<Candidate> scratch) {
  Token begin = 0;
  if (logits.maxima != nullptr) {
    const float* const end = logits.maxima + Logits::Groups(vocabulary);
    begin = kLogitGroup * static_cast<Token>(std::max_element(logits.maxima, end) - logits.maxima);
  }
  std::size_t count = 0;
  for (Token token = begin; token < std::min(vocabulary, begin + kLogitGroup); ++token) {
    Insert({token, logits.values[token]}, scratch, &count);
  }
  if (count < scratch.size()) return kMinusInfinity;
  double bound = -kMinusInfinity;
  for (const Candidate& likely : scratch) {
    const std::uint32_t draw =
        PhiloxDraw(noise.seed, noise.position, static_cast<std::uint32_t>(likely.token),
                   NoisePurpose::kSampling);
    bound = std::min(bound, NoisyScore(logits.values[likely.token], temperature, draw));
  }
  return bound;
}

// The token of the largest logit, by the maxima of groups that are known; returns how many: 0 where
// all are -inf or NaN.
std::size_t Likeliest(Logits logits, int vocabulary, Candidate* best) {
  const auto groups = static_cast<int>(Logits::Groups(vocabulary));
  float most = -std::numeric_limits<float>::infinity();
  Token token = -1;
  for (int group = 0; group < groups; ++group) {
    if (!(logits.maxima[group] > most)) continue;
    most = logits.maxima[group];
    token = group * static_cast<Token>(kLogitGroup);
  }
  if (token < 0) return 0;
  while (logits.values[token] != most) ++token;
  *best = {token, logits.values[token]};
  return 1;
}

class CpuBackend final : public Backend {
 public:
  // `quant` is null but for kPortable.
  CpuBackend(const cpu::Kernels& kernels, const cpu::QuantKernels* quant, ThreadPool* pool,
             Numerics numerics)
      : name_(quant == nullptr ? fmt::format("cpu/{}", kernels.name)
                               : fmt::format("cpu/{}, portable bits", quant->name)),
        kernels_(kernels),
        quant_(quant),
        pool_(pool),
        precision_(numerics.precision),
        kv_format_(numerics.kv) {
    const int workers = pool == nullptr ? 1 : pool->size();
    scratch_.resize(static_cast<std::size_t>(workers));
    ranges_.reserve(kUsualRows);
    for (int i = 0; i < workers; ++i) attention_.emplace_back(kernels_, kv_format_);
  }

  std::string_view name() const override { return name_; }
  Precision precision() const override { return precision_; }
  KvFormat kv_format() const override { return kv_format_; }
  std::string_view layout() const override {
    switch (precision_) {
      case Precision::kBF16:
        return "panels of bf16";
      case Precision::kF32:
        return "panels of f32";
      case Precision::kPortable:
        return "panels as stored";
    }
    return "";
  }

  Matrix Pack(std::span<const TensorView> parts) override {
    Matrix matrix = cpu::MakeMatrix(parts, precision_ == Precision::kBF16  ? AsBF16
                                           : precision_ == Precision::kF32 ? AsF32
                                                                           : PortableFormat);
    Share(PanelsOf(matrix), matrix.outputs * matrix.inputs,
          [&](int, std::int64_t begin, std::int64_t end) {
            cpu::PackPanels(parts, begin, end, &matrix);
          });
    return matrix;
  }

  KvStore AllocateKv(const KvShape& shape) override {
    const std::size_t bytes = KvLayout(shape, kv_format_).bytes(shape.layers);
    return KvStore{shape, Buffer(bytes), Buffer(bytes)};
  }

  std::size_t KvBytes(const KvShape& shape) const override {
    return 2 * KvLayout(shape, kv_format_).bytes(shape.layers);
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
    Multiply(weights, x, rows, y, false);
  }

  // Strips of outputs, so that the maxima are taken while the products are still in cache.
  void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                    float* maxima) override {
    static_assert(kLogitGroup == cpu::kNoiseGroup && kLogitGroup % kPanel == 0);
    constexpr std::int64_t kStrip = 8;  // Groups.
    constexpr std::int64_t kGroupPanels = kLogitGroup / kPanel;
    if (rows == 0) return;
    FT_CHECK(weights.bands.size() == 1, "a matrix of {} formats", weights.bands.size());
    QuantizeInputs(weights, x, rows);
    const std::int64_t groups = Logits::Groups(weights.outputs);
    const std::int64_t panels = PanelsOf(weights);
    Share(groups, CostOf(weights, rows), [&](int worker, std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; group += kStrip) {
        const std::int64_t strip_end = std::min(end, group + kStrip);
        MultiplyPanels(worker, weights, x, rows, y, false, group * kGroupPanels,
                       std::min(panels, strip_end * kGroupPanels));
        const std::int64_t first = group * kLogitGroup;
        const auto count =
            static_cast<int>(std::min(weights.outputs, strip_end * kLogitGroup) - first);
        for (int row = 0; row < rows; ++row) {
          kernels_.group_maxima(y + row * weights.outputs + first, count,
                                maxima + row * groups + group);
        }
      }
    });
  }

  void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) override {
    Multiply(weights, x, rows, y, true);
  }

  void RotateAndStore(const RopeTable& rope, const BatchPlan& plan, const HeadShape& heads,
                      int layer, float* qkv, KvStore& kv) override {
    const auto rows = static_cast<std::int64_t>(plan.rows.size());
    const KvLayout layout(kv.shape, kv_format_);
    const cpu::AttentionKernels& attention = AttentionOps();
    const int half = heads.head_dim / 2;
    Share(rows, rows * heads.row_width() * 2, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const RowPlace& place = plan.rows[static_cast<std::size_t>(row)];
        float* const q = qkv + row * heads.row_width();
        kernels_.rotate(q, heads.heads + heads.kv_heads, heads.head_dim,
                        rope.cos.as<float>() + std::int64_t{place.position} * half,
                        rope.sin.as<float>() + std::int64_t{place.position} * half);
        const float* const k = q + std::int64_t{heads.heads} * heads.head_dim;
        const float* const v = k + std::int64_t{heads.kv_heads} * heads.head_dim;
        for (int head = 0; head < heads.kv_heads; ++head) {
          attention.store_kv(k + std::int64_t{head} * heads.head_dim,
                             v + std::int64_t{head} * heads.head_dim, heads.head_dim,
                             layout.ChunkOf(kv, layer, place.slot, head), place.slot % kBlockSize);
        }
      }
    });
  }

  void Attention(const BatchPlan& plan, const HeadShape& heads, int layer, const float* qkv,
                 const KvStore& kv, float* out) override {
    const int rows = static_cast<int>(plan.rows.size());
    const int rows_at_once = std::max(1, cpu::kQueryRows / (heads.heads / heads.kv_heads));
    std::int64_t cost = 0;
    ranges_.clear();
    for (int row = 0; row < rows; ++row) {
      const RowPlace& place = plan.rows[static_cast<std::size_t>(row)];
      cost += std::int64_t{place.position + 1} * heads.heads * heads.head_dim;
      const bool fits = !ranges_.empty() && row - ranges_.back().begin < rows_at_once;
      if (fits && plan.rows[static_cast<std::size_t>(row) - 1].sequence == place.sequence) {
        ranges_.back().end = row + 1;
      } else {
        ranges_.push_back({row, row + 1});
      }
    }
    const cpu::AttentionCall call{plan, heads, layer, qkv, kv, {kv.shape, kv_format_}, out};
    const auto tasks = static_cast<std::int64_t>(ranges_.size()) * heads.kv_heads;
    const auto run = [&](int worker, std::int64_t task) {
      const RowRange range = ranges_[static_cast<std::size_t>(task / heads.kv_heads)];
      attention_[static_cast<std::size_t>(worker)].Run(call, range.begin, range.end,
                                                       static_cast<int>(task % heads.kv_heads));
    };
    if (pool_ == nullptr || pool_->size() == 1 || tasks < 2 || cost < kWorthSharing) {
      for (std::int64_t task = 0; task < tasks; ++task) run(0, task);
      return;
    }
    // Contexts differ in length, so workers take the next task when they are done with one.
    std::atomic<std::int64_t> next{0};
    pool_->Run([&](int worker, int) {
      for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
        run(worker, task);
      }
    });
  }

  void SiluMul(const float* gate_up, int rows, int width, float* out) override {
    Share(rows, std::int64_t{rows} * width * 2, [&](int, std::int64_t begin, std::int64_t end) {
      kernels_.silu_mul(gate_up + begin * 2 * width, static_cast<int>(end - begin), width,
                        out + begin * width);
    });
  }

  void CopyKv(KvStore& kv, std::span<const KvMove> moves) override {
    const KvLayout layout(kv.shape, kv_format_);
    const cpu::AttentionKernels& attention = AttentionOps();
    for (int layer = 0; layer < kv.shape.layers; ++layer) {
      for (const KvMove& move : moves) {
        for (int head = 0; head < kv.shape.kv_heads; ++head) {
          attention.copy_kv(layout.ChunkOf(kv, layer, move.from, head), move.from % kBlockSize,
                            kv.shape.head_dim, layout.ChunkOf(kv, layer, move.to, head),
                            move.to % kBlockSize);
        }
      }
    }
  }

  std::size_t NoisyTop(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                       std::span<Candidate> best) override {
    constexpr int kFirstScan = cpu::kNoiseGroup;
    constexpr int kLargestScan = 4096;
    if (best.empty()) return 0;
    if (temperature == 0.0F && best.size() == 1 && logits.maxima != nullptr) {
      return Likeliest(logits, vocabulary, best.data());
    }
    hits_.resize(kLargestScan);
    cpu::NoiseScan scan{logits.values, logits.maxima, 0, 0, noise.seed, noise.position, 0, 0};
    const bool noisy = temperature != 0.0F;
    // Below this 1 / T leaves the range of float; every token is then looked at.
    const bool bounded = !noisy || temperature > 1e-30F;
    scan.inverse_temperature = noisy ? (bounded ? 1.0F / temperature : 1.0F) : 0.0F;
    const double first = FirstBound(logits, vocabulary, temperature, noise, best);
    std::size_t count = 0;
    for (int size = kFirstScan; scan.end < vocabulary; size = std::min(2 * size, kLargestScan)) {
      scan.begin = scan.end;
      scan.end = std::min(vocabulary, scan.begin + size);
      const double worst = count == best.size() ? best[count - 1].score : first;
      scan.threshold = -std::numeric_limits<float>::infinity();
      if (bounded && worst > kMinusInfinity) {
        const double margin = noisy ? 1e-3 + 1e-6 * std::abs(worst) : 0.0;
        scan.threshold = static_cast<float>(worst - margin);
      }
      const int hits = kernels_.scan_noise(scan, hits_.data());
      for (int i = 0; i < hits; ++i) {
        const cpu::NoiseHit hit = hits_[static_cast<std::size_t>(i)];
        const double score = NoisyScore(logits.values[hit.token], temperature, hit.draw);
        if (score > kMinusInfinity) Insert({hit.token, score}, best, &count);
      }
    }
    return count;
  }

 private:
  const cpu::AttentionKernels& AttentionOps() const {
    return kernels_.attention[static_cast<std::size_t>(kv_format_)];
  }

  // Calls work(worker, begin, end) for shares of [0, count), in parallel if it is worth it.
  template <typename Work>
  void Share(std::int64_t count, std::int64_t cost, const Work& work) {
    if (pool_ == nullptr || pool_->size() == 1 || count < 2 || cost < kWorthSharing) {
      work(0, std::int64_t{0}, count);
      return;
    }
    pool_->Run([&](int worker, int workers) {
      const std::int64_t begin = count * worker / workers;
      const std::int64_t end = count * (worker + 1) / workers;
      if (begin < end) work(worker, begin, end);
    });
  }

  void Multiply(const Matrix& weights, const float* x, int rows, float* y, bool add) {
    if (rows == 0) return;
    QuantizeInputs(weights, x, rows);
    Share(PanelsOf(weights), CostOf(weights, rows),
          [&](int worker, std::int64_t begin, std::int64_t end) {
            MultiplyPanels(worker, weights, x, rows, y, add, begin, end);
          });
  }

  // For the products of quantised bands, once for all of them.
  void QuantizeInputs(const Matrix& weights, const float* x, int rows) {
    if (!HasQuantized(weights)) return;
    const auto inputs = static_cast<int>(weights.inputs);
    const std::size_t bytes = cpu::RowBlocks(rows, inputs) * sizeof(cpu::RowBlock);
    if (row_blocks_.bytes() < bytes) row_blocks_ = Buffer(bytes);
    const std::int64_t groups = (rows + cpu::kRowGroup - 1) / cpu::kRowGroup;
    Share(groups, rows * weights.inputs, [&](int, std::int64_t begin, std::int64_t end) {
      quant_->quantize({x, rows, inputs, static_cast<int>(begin * cpu::kRowGroup),
                        static_cast<int>(std::min<std::int64_t>(rows, end * cpu::kRowGroup)),
                        row_blocks_.as<cpu::RowBlock>()});
    });
  }

  // The product for panels [begin, end) of all bands, by one worker.
  void MultiplyPanels(int worker, const Matrix& weights, const float* x, int rows, float* y,
                      bool add, std::int64_t begin, std::int64_t end) {
    const auto inputs = static_cast<int>(weights.inputs);
    const std::size_t scratch_bytes = sizeof(float) * cpu::kPackRows * PadToChunk(inputs);
    Buffer& scratch = scratch_[static_cast<std::size_t>(worker)];
    if (scratch.bytes() < scratch_bytes) scratch = Buffer(scratch_bytes);
    cpu::VisitBands(
        weights, begin, end, [&](const MatrixBand& band, std::int64_t from, std::int64_t to) {
          const std::byte* const data = weights.data.data() + band.offset;
          const auto outputs = static_cast<int>(band.end - band.begin);
          const auto stride = static_cast<std::ptrdiff_t>(weights.outputs);
          if (IsQuantized(band.format)) {
            quant_->product[static_cast<std::size_t>(band.format)](
                {data, cpu::PanelBytes(band.format, inputs), row_blocks_.as<cpu::RowBlock>(),
                 y + band.begin, stride, rows, inputs, outputs, static_cast<int>(from),
                 static_cast<int>(to), add});
            return;
          }
          const auto multiply =
              band.format == WeightFormat::kBF16 ? kernels_.matmul_bf16 : kernels_.matmul_f32;
          multiply({data, x, y + band.begin, stride, rows, inputs, outputs, static_cast<int>(from),
                    static_cast<int>(to), add, scratch.data()});
        });
  }

  std::string name_;
  const cpu::Kernels& kernels_;
  const cpu::QuantKernels* quant_;
  ThreadPool* pool_;
  Precision precision_;
  KvFormat kv_format_;
  Buffer row_blocks_;            // The inputs of a product, quantised.
  std::vector<Buffer> scratch_;  // Of each worker.
  std::vector<cpu::AttentionWorker> attention_;
  std::vector<RowRange> ranges_;
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
