// The portable arithmetic in plain loops: what docs/develop/arithmetic.md says, one number at a
// time.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/backend/routing.h"
#include "core/backend/testing/portable_arithmetic.h"
#include "core/backend/testing/quantized_product.h"
#include "core/backend/testing/reference_backend.h"
#include "core/backend/testing/reference_parts.h"

namespace foretoken {
namespace {

using reference::kLanes;
using reference::Lanes;
using reference::RoundToBf16;

// Inputs of products are taken in whole chunks, zeros behind the last.
constexpr std::int64_t kChunk = 32;

std::int64_t PadToChunk(std::int64_t count) { return (count + kChunk - 1) / kChunk * kChunk; }

// cap * tanh(x * inverse / 2).
float Capped(float x, float inverse, float cap) {
  const float e = reference::Exp(std::min(x * inverse, 88.0F));
  return (e - 1.0F) / (e + 1.0F) * cap;
}

float ClampedSwish(float gate, float up) {
  const float least = std::min(gate, kSwishLimit);
  const float e = reference::Exp(std::min(0.0F - 1.702F * least, 88.0F));
  const float kept = std::max(std::min(up, kSwishLimit), -kSwishLimit);
  return least / (1.0F + e) * (kept + 1.0F);
}

void PortableSoftmax(const float* x, int count, float* out) {
  const float largest = *std::max_element(x, x + count);
  Lanes sums = {};
  for (int i = 0; i < count; ++i) {
    out[i] = reference::Exp(x[i] - largest);
    sums[i % kLanes] += out[i];
  }
  const float sum = reference::SumOf(sums);
  for (int i = 0; i < count; ++i) out[i] /= sum;
}

float PortableSigmoid(float x) { return 1.0F / (1.0F + reference::Exp(std::min(0.0F - x, 88.0F))); }

void PortableSigmoids(const float* x, int count, float* out) {
  std::transform(x, x + count, out, PortableSigmoid);
}

// A row of inputs as each kind of weights takes them.
struct InputRow {
  std::vector<float> exact;
  std::vector<float> rounded;  // To BF16.
  std::vector<reference::InputBlock> blocks;
};

class PortableReference final : public reference::ReferenceBase {
 public:
  explicit PortableReference(KvFormat kv)
      : ReferenceBase({Precision::kPortable, kv},
                      kv == KvFormat::kBF16 ? reference::KeepRounded : reference::KeepExactly) {}

  std::string_view layout() const override { return "rows as stored"; }

  Matrix MakeStack(std::span<const TensorView> parts, int count) override {
    FT_CHECK(!parts.empty());
    Matrix matrix{.count = count};
    matrix.inputs = parts[0].shape.at(1);
    matrix.bands = BandsOf(parts, PortableFormat);
    matrix.outputs = matrix.bands.back().end;
    std::size_t bytes = 0;
    for (MatrixBand& band : matrix.bands) {
      band.offset = bytes;
      bytes += Size(band.end - band.begin) * RowBytes(matrix, band);
    }
    matrix.data = Buffer(bytes * count);
    return matrix;
  }
  void PackInto(std::span<const TensorView> parts, int index, Matrix* stack) override {
    std::byte* to = stack->data.data() + Size(index) * stack->stride();
    for (const TensorView& part : parts) {
      const auto elements = part.elements();
      const std::size_t size = FormatBytes(PortableFormat(part.format), elements);
      if (part.format == WeightFormat::kF16) {
        LoadElements(part, 0, elements, reinterpret_cast<float*>(to));
      } else {
        std::memcpy(to, part.data, size);
      }
      to += size;
    }
  }

  void Embed(const Matrix& table, std::span<const Token> tokens, float* out) override {
    for (const Token token : tokens) {
      FT_CHECK(token >= 0 && token < table.outputs, "token {} of {}", token, table.outputs);
      const TensorView row{BandOf(table, token).format, {1, table.inputs}, Row(table, token)};
      LoadElements(row, 0, table.inputs, out);
      out += table.inputs;
    }
  }

  void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width,
               float* out) override {
    for (int r = 0; r < rows; ++r, x += width, out += width) {
      // Four times 16 sums, as long as there are 64 numbers left.
      Lanes sums[4] = {};
      for (int i = 0; i < width; ++i) {
        const int sum = i < width / 64 * 64 ? i / kLanes % 4 : 0;
        float& lane = sums[sum][i % kLanes];
        lane = std::fma(x[i], x[i], lane);
      }
      Lanes all;
      for (int i = 0; i < kLanes; ++i) {
        all[i] = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
      }
      const float mean = reference::SumOf(all) / static_cast<float>(width);
      const float factor = 1.0F / std::sqrt(mean + epsilon);
      for (int i = 0; i < width; ++i) out[i] = x[i] * factor * gain[i];
    }
  }

  void LayerNorm(const float* x, const float* gain, const float* bias, float epsilon, int rows,
                 int width, float* out) override {
    for (int r = 0; r < rows; ++r, x += width, out += width) {
      Lanes sums = {};
      for (int i = 0; i < width; ++i) sums[i % kLanes] += x[i];
      const float mean = reference::SumOf(sums) / static_cast<float>(width);
      Lanes squares = {};
      for (int i = 0; i < width; ++i) {
        float& lane = squares[i % kLanes];
        lane = std::fma(x[i] - mean, x[i] - mean, lane);
      }
      const float variance = reference::SumOf(squares) / static_cast<float>(width);
      const float factor = 1.0F / std::sqrt(variance + epsilon);
      for (int i = 0; i < width; ++i) {
        const float scaled = (x[i] - mean) * factor * gain[i];
        out[i] = bias == nullptr ? scaled : scaled + bias[i];
      }
    }
  }

  void AddGatedRows(const float* gates, const float* x, int rows, int width, float* y) override {
    for (int r = 0; r < rows; ++r, x += width, y += width) {
      const float part = PortableSigmoid(gates[r]);
      for (int d = 0; d < width; ++d) y[d] = std::fma(part, x[d], y[d]);
    }
  }

  void CapLogits(float cap, int rows, std::int64_t vocabulary, float* logits,
                 float* maxima) override {
    for (std::int64_t i = 0; i < rows * vocabulary; ++i) {
      logits[i] = Capped(logits[i], 2.0F / cap, cap);
    }
    reference::GroupMaxima(logits, rows, vocabulary, maxima);
  }

  void MatMul(const Matrix& weights, const float* x, int rows, float* y) override {
    Multiply(weights, x, rows, false, y);
  }

  void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) override {
    Multiply(weights, x, rows, true, y);
  }

  void MatMulGroups(const Matrix& stack, std::span<const RowGroup> groups, const float* bias,
                    const float* x, float* y) override {
    for (const RowGroup& group : groups) {
      const int rows = group.end - group.begin;
      float* const to = y + group.begin * stack.outputs;
      if (bias != nullptr) FillRows(bias + group.matrix * stack.outputs, rows, stack.outputs, to);
      Multiply(stack, x + group.begin * stack.inputs, rows, bias != nullptr, to, group.matrix);
    }
  }

  void Route(const Routing& routing, const float* scores, const float* choice_bias, int rows,
             std::int32_t* experts, float* weights) override {
    router_.Route({PortableSoftmax, PortableSigmoids}, routing, scores, choice_bias, rows, experts,
                  weights);
  }

  void WeightedSums(const float* x, const std::int32_t* places, const float* weights, int rows,
                    int count, int width, float* out) override {
    for (int r = 0; r < rows; ++r, places += count, weights += count, out += width) {
      for (int d = 0; d < width; ++d) {
        float sum = 0;
        for (int i = 0; i < count; ++i) {
          sum = std::fma(weights[i], x[std::int64_t{places[i]} * width + d], sum);
        }
        out[d] = sum;
      }
    }
  }

  void GatedMul(Activation activation, const float* gate_up, int rows, int width,
                float* out) override {
    for (int r = 0; r < rows; ++r, gate_up += 2 * std::int64_t{width}, out += width) {
      for (int i = 0; i < width; ++i) {
        const float gate = gate_up[i];
        if (activation == Activation::kClampedSwish) {
          out[i] = ClampedSwish(gate, gate_up[width + i]);
          continue;
        }
        const float t = activation == Activation::kGeluTanh
                            ? 1.59576912F * std::fma(0.044715F, gate * gate * gate, gate)
                            : gate;
        const float e = reference::Exp(std::min(0.0F - t, 88.0F));
        const float factor = activation == Activation::kSigmoid ? 1.0F : gate;
        out[i] = factor / (1.0F + e) * gate_up[width + i];
      }
    }
  }

 private:
  static std::size_t RowBytes(const Matrix& matrix, const MatrixBand& band) {
    return FormatBytes(band.format, matrix.inputs);
  }
  static const MatrixBand& BandOf(const Matrix& matrix, std::int64_t output) {
    return *std::ranges::find_if(matrix.bands,
                                 [&](const MatrixBand& band) { return output < band.end; });
  }
  static const std::byte* Row(const Matrix& matrix, std::int64_t output, int index = 0) {
    const MatrixBand& band = BandOf(matrix, output);
    return matrix.data.data() + Size(index) * matrix.stride() + band.offset +
           Size(output - band.begin) * RowBytes(matrix, band);
  }

  // `index`: which matrix of a stack.
  static void Multiply(const Matrix& weights, const float* x, int rows, bool add, float* y,
                       int index = 0) {
    const bool quantizes = std::ranges::any_of(
        weights.bands, [](const auto& band) { return IsQuantized(band.format); });
    for (int r = 0; r < rows; ++r, x += weights.inputs, y += weights.outputs) {
      InputRow row{.exact = {x, x + weights.inputs}};
      for (const float value : row.exact) row.rounded.push_back(RoundToBf16(value));
      if (quantizes) row.blocks = reference::QuantizeInputs(x, weights.inputs);
      for (const MatrixBand& band : weights.bands) {
        for (std::int64_t o = band.begin; o < band.end; ++o) {
          const float start = add ? y[o] : 0.0F;
          const std::byte* const from = Row(weights, o, index);
          y[o] = IsQuantized(band.format)
                     ? reference::QuantizedProduct(row.blocks, band.format, from) + start
                     : Product(start, band.format, from, row);
        }
      }
    }
  }

  // One multiply-add after the other.
  static float Product(float start, WeightFormat format, const std::byte* from,
                       const InputRow& row) {
    const std::int64_t inputs = std::ssize(row.exact);
    std::vector<float> weights(PadToChunk(inputs), 0.0F);
    LoadElements({format, {1, inputs}, from}, 0, inputs, weights.data());
    std::vector<float> x = format == WeightFormat::kBF16 ? row.rounded : row.exact;
    x.resize(weights.size(), 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) start = std::fma(weights[i], x[i], start);
    return start;
  }

  // KV in Q8_0 is kept as it came and put into blocks wherever it is read.
  static float ScoreOfBlocks(const float* query, const float* key, int head_dim) {
    float score = 0;
    for (const reference::InputBlock& block : reference::QuantizeHead(key, head_dim)) {
      float part[reference::kInputBlock] = {};
      std::copy_n(query, std::min(head_dim, reference::kInputBlock), part);
      const reference::WideBlock wide = reference::QuantizeWide(part);
      std::int32_t sum = 0;
      for (int d = 0; d < reference::kInputBlock; ++d) sum += block.values[d] * wide.values[d];
      score = std::fma(static_cast<float>(sum) * block.scale, wide.scale, score);
      query += reference::kInputBlock;
      head_dim -= reference::kInputBlock;
    }
    return score;
  }

  // Values are kept in blocks of `width` numbers, of which there are sums of the first.
  static void AddBlocks(std::span<const float* const> values, int width, const float* weights,
                        std::vector<float>* sums) {
    std::vector<std::vector<reference::InputBlock>> heads;
    for (const float* value : values) heads.push_back(reference::QuantizeHead(value, width));
    for (std::size_t block = 0; block * reference::kInputBlock < sums->size(); ++block) {
      float scaled[reference::kInputBlock] = {};
      for (std::size_t i = 0; i < heads.size(); ++i) scaled[i] = weights[i] * heads[i][block].scale;
      const reference::WideBlock wide = reference::QuantizeWide(scaled);
      const std::size_t begin = block * reference::kInputBlock;
      const std::size_t end = std::min(sums->size(), begin + reference::kInputBlock);
      for (std::size_t d = begin; d < end; ++d) {
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < heads.size(); ++i) {
          sum += wide.values[i] * heads[i][block].values[d - begin];
        }
        (*sums)[d] = std::fma(static_cast<float>(sum), wide.scale, (*sums)[d]);
      }
    }
  }

  float Score(const float* query, const float* key, int head_dim) const {
    if (numerics_.kv == KvFormat::kQ8_0) return ScoreOfBlocks(query, key, head_dim);
    float score = 0;
    for (int d = 0; d < head_dim; ++d) {
      const float q = numerics_.kv == KvFormat::kBF16 ? RoundToBf16(query[d]) : query[d];
      score = std::fma(key[d], q, score);
    }
    return score;
  }

  // 2^power, what a position weighs.
  float WeightOf(float power) const {
    return numerics_.kv == KvFormat::kBF16 ? RoundToBf16(reference::CoarseExp2(power))
                                           : reference::Exp2(power);
  }

  // Adds the values of a block of positions, each times its weight.
  void AddValues(std::span<const float* const> values, int width, const float* weights,
                 std::vector<float>* sums) const {
    if (numerics_.kv == KvFormat::kQ8_0) {
      AddBlocks(values, width, weights, sums);
      return;
    }
    for (std::size_t d = 0; d < sums->size(); ++d) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        (*sums)[d] = std::fma(values[i][d], weights[i], (*sums)[d]);
      }
    }
  }

  // An online softmax in powers of two over blocks of keys.
  void AttendHead(const BatchPlan& plan, const RowPlace& place, const std::int32_t* places,
                  const AttentionRule& rule, int head, const float* query, const float* keys,
                  const float* values, std::int64_t stride, const HeadShape& heads,
                  float* out) override {
    const int value_dim = heads.value_dim();
    const bool capped = rule.score_cap != 0;
    const auto inverse = static_cast<float>(2 * rule.scale / double{rule.score_cap});
    const auto cap = static_cast<float>(std::numbers::log2e * double{rule.score_cap});
    const float scale = capped ? 1.0F : static_cast<float>(std::numbers::log2e * rule.scale);
    std::vector<float> weighted(value_dim, 0.0F);
    Lanes sums = {};
    float largest = -std::numeric_limits<float>::infinity();
    if (rule.sinks != nullptr) {
      largest = rule.sinks[head] * static_cast<float>(std::numbers::log2e);
      sums[0] = 1;
    }
    const std::int32_t window = rule.WindowBegin(place.position);
    for (std::int32_t begin = 0; begin <= place.position; begin += kBlockSize) {
      // Lanes that it does not see.
      const int hidden_from = std::clamp(rule.anchors - begin, 0, kBlockSize);
      const int hidden_to = std::max(hidden_from, std::min(window - begin, kBlockSize));
      const auto hides = [=](int i) { return i >= hidden_from && i < hidden_to; };
      if (hidden_to - hidden_from == kBlockSize) continue;
      const int count = std::min(kBlockSize, place.position + 1 - begin);
      const float* value_rows[kBlockSize];
      float scores[kBlockSize];
      float best = -std::numeric_limits<float>::infinity();
      for (int i = 0; i < count; ++i) {
        const std::int64_t slot = reference::SlotAt(plan, place, places, begin + i);
        value_rows[i] = values + slot * stride;
        if (hides(i)) continue;
        scores[i] = Score(query, keys + slot * stride, heads.head_dim);
        if (capped) scores[i] = Capped(scores[i], inverse, cap);
        best = std::max(best, scores[i]);
      }
      const float after = std::max(best * scale, largest);
      const float factor = reference::Exp2(largest - after);
      largest = after;
      float weights[kBlockSize] = {};
      for (int i = 0; i < count; ++i) {
        if (!hides(i)) weights[i] = WeightOf(std::fma(scores[i], scale, -after));
      }
      for (int i = 0; i < kLanes; ++i) {
        sums[i] = sums[i] * factor + (weights[i] + weights[i + kLanes]);
      }
      for (float& sum : weighted) sum *= factor;
      AddValues({value_rows, Size(count)}, heads.head_dim, weights, &weighted);
    }
    const float factor = 1.0F / reference::SumOf(sums);
    for (int d = 0; d < value_dim; ++d) out[d] = weighted[d] * factor;
  }

  Router router_;
};

}  // namespace

std::unique_ptr<Backend> MakePortableReference(KvFormat kv) {
  return std::make_unique<PortableReference>(kv);
}

}  // namespace foretoken
