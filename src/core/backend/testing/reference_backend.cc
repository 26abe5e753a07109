#include "core/backend/testing/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/backend/routing.h"
#include "core/backend/testing/reference_parts.h"

namespace foretoken {
namespace {

using reference::RoundToBf16;

float Exactly(float value) { return value; }

// What blocks of it stand for.
void KeepQuantized(const float* head, int count, float* kept) {
  const auto blocks = reference::QuantizeHead(head, count);
  for (std::size_t i = 0; i < Size(count); ++i) {
    const reference::InputBlock& block = blocks[i / reference::kInputBlock];
    kept[i] = static_cast<float>(block.values[i % reference::kInputBlock]) * block.scale;
  }
}

reference::KeepHead KeepAs(KvFormat format) {
  switch (format) {
    case KvFormat::kBF16:
      return reference::KeepRounded;
    case KvFormat::kF32:
      return reference::KeepExactly;
    case KvFormat::kQ8_0:
      return KeepQuantized;
  }
  return nullptr;
}

double Sigmoid(float x) { return 1 / (1 + std::exp(-double{x})); }

void Sigmoids(const float* x, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<float>(Sigmoid(x[i]));
}

void Softmax(const float* x, int count, float* out) {
  const double largest = *std::max_element(x, x + count);
  const auto part = [largest](float value) { return std::exp(value - largest); };
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += part(x[i]);
  for (int i = 0; i < count; ++i) out[i] = static_cast<float>(part(x[i]) / sum);
}

class ReferenceBackend final : public reference::ReferenceBase {
 public:
  explicit ReferenceBackend(Numerics numerics)
      : ReferenceBase(numerics, KeepAs(numerics.kv)),
        round_products_(numerics.precision == Precision::kBF16 ? RoundToBf16 : Exactly),
        round_attention_(numerics.kv == KvFormat::kBF16 ? RoundToBf16 : Exactly) {}

  std::string_view layout() const override {
    return numerics_.precision == Precision::kBF16 ? "rows of values of bf16" : "rows of f32";
  }

  Matrix MakeStack(std::span<const TensorView> parts, int count) override {
    FT_CHECK(!parts.empty());
    Matrix matrix{.count = count};
    matrix.inputs = parts[0].shape.at(1);
    for (const TensorView& part : parts) {
      FT_CHECK(part.shape.size() == 2 && part.shape[1] == matrix.inputs);
      matrix.outputs += part.shape[0];
    }
    const std::int64_t floats = count * matrix.outputs * matrix.inputs;
    matrix.data = Buffer(floats * sizeof(float));
    return matrix;
  }
  void PackInto(std::span<const TensorView> parts, int index, Matrix* stack) override {
    float* const begin = stack->data.as<float>() + index * stack->outputs * stack->inputs;
    float* out = begin;
    for (const TensorView& part : parts) {
      LoadElements(part, 0, part.elements(), out);
      out += part.elements();
    }
    std::transform(begin, out, begin, round_products_);
  }

  void Embed(const Matrix& table, std::span<const Token> tokens, float* out) override {
    for (const Token token : tokens) {
      FT_CHECK(token >= 0 && token < table.outputs, "token {} of {}", token, table.outputs);
      const float* row = table.data.as<float>() + token * table.inputs;
      out = std::copy(row, row + table.inputs, out);
    }
  }

  void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width,
               float* out) override {
    for (int r = 0; r < rows; ++r, x += width, out += width) {
      const double scale = 1.0 / std::sqrt(Dot(x, x, width) / width + double{epsilon});
      for (int i = 0; i < width; ++i) out[i] = static_cast<float>(x[i] * scale * gain[i]);
    }
  }

  void LayerNorm(const float* x, const float* gain, const float* bias, float epsilon, int rows,
                 int width, float* out) override {
    for (int r = 0; r < rows; ++r, x += width, out += width) {
      const double mean = std::accumulate(x, x + width, 0.0) / width;
      double squares = 0;
      for (int i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double scale = 1.0 / std::sqrt(squares / width + double{epsilon});
      for (int i = 0; i < width; ++i) {
        const double shift = bias == nullptr ? 0.0 : double{bias[i]};
        out[i] = static_cast<float>((x[i] - mean) * scale * gain[i] + shift);
      }
    }
  }

  void AddGatedRows(const float* gates, const float* x, int rows, int width, float* y) override {
    for (int r = 0; r < rows; ++r, x += width, y += width) {
      const double part = Sigmoid(gates[r]);
      for (int d = 0; d < width; ++d) y[d] = static_cast<float>(y[d] + x[d] * part);
    }
  }

  void CapLogits(float cap, int rows, std::int64_t vocabulary, float* logits,
                 float* maxima) override {
    for (std::int64_t i = 0; i < rows * vocabulary; ++i) {
      logits[i] = static_cast<float>(double{cap} * std::tanh(double{logits[i]} / double{cap}));
    }
    reference::GroupMaxima(logits, rows, vocabulary, maxima);
  }

  void MatMul(const Matrix& weights, const float* x, int rows, float* y) override {
    std::fill_n(y, rows * weights.outputs, 0.0F);
    MatMulAdd(weights, x, rows, y);
  }

  void MatMulAdd(const Matrix& weights, const float* x, int rows, float* y) override {
    const std::int64_t inputs = weights.inputs;
    for (int r = 0; r < rows; ++r, y += weights.outputs) {
      const float* row = RoundRow(round_products_, x + r * inputs, inputs);
      for (std::int64_t o = 0; o < weights.outputs; ++o) {
        y[o] += static_cast<float>(Dot(row, weights.data.as<float>() + o * inputs, inputs));
      }
    }
  }

  void MatMulGroups(const Matrix& stack, std::span<const RowGroup> groups, const float* bias,
                    const float* x, float* y) override {
    for (const RowGroup& group : groups) {
      const float* const weights =
          stack.data.as<float>() + group.matrix * stack.outputs * stack.inputs;
      for (int r = group.begin; r < group.end; ++r) {
        const float* row = RoundRow(round_products_, x + r * stack.inputs, stack.inputs);
        for (std::int64_t o = 0; o < stack.outputs; ++o) {
          const double start = bias == nullptr ? 0 : double{bias[group.matrix * stack.outputs + o]};
          y[r * stack.outputs + o] =
              static_cast<float>(start + Dot(row, weights + o * stack.inputs, stack.inputs));
        }
      }
    }
  }

  void Route(const Routing& routing, const float* scores, const float* choice_bias, int rows,
             std::int32_t* experts, float* weights) override {
    router_.Route({Softmax, Sigmoids}, routing, scores, choice_bias, rows, experts, weights);
  }

  void WeightedSums(const float* x, const std::int32_t* places, const float* weights, int rows,
                    int count, int width, float* out) override {
    for (int r = 0; r < rows; ++r, places += count, weights += count, out += width) {
      for (int d = 0; d < width; ++d) {
        double sum = 0;
        for (int i = 0; i < count; ++i) {
          sum += double{weights[i]} * double{x[std::int64_t{places[i]} * width + d]};
        }
        out[d] = static_cast<float>(sum);
      }
    }
  }

  void GatedMul(Activation activation, const float* gate_up, int rows, int width,
                float* out) override {
    for (int r = 0; r < rows; ++r, gate_up += 2 * std::int64_t{width}, out += width) {
      for (int i = 0; i < width; ++i) {
        const double gate = gate_up[i];
        if (activation == Activation::kSigmoid) {
          out[i] = static_cast<float>(1 / (1.0 + std::exp(-gate)) * gate_up[width + i]);
          continue;
        }
        if (activation == Activation::kClampedSwish) {
          const double most = std::min(gate, double{kSwishLimit});
          const double up =
              std::clamp(double{gate_up[width + i]}, double{-kSwishLimit}, double{kSwishLimit});
          out[i] = static_cast<float>(most / (1.0 + std::exp(-1.702 * most)) * (up + 1));
          continue;
        }
        const double u = std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
        const double activated = activation == Activation::kSilu
                                     ? gate / (1.0 + std::exp(-gate))
                                     : 0.5 * gate * (1.0 + std::tanh(u));
        out[i] = static_cast<float>(activated * gate_up[width + i]);
      }
    }
  }

 private:
  static double Dot(const float* a, const float* b, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
    return sum;
  }

  const float* RoundRow(float (*round)(float), const float* x, std::int64_t width) {
    rounded_.resize(width);
    for (std::int64_t i = 0; i < width; ++i) rounded_[i] = round(x[i]);
    return rounded_.data();
  }

  void AttendHead(const BatchPlan& plan, const RowPlace& place, const std::int32_t* places,
                  const AttentionRule& rule, int head, const float* query, const float* keys,
                  const float* values, std::int64_t stride, const HeadShape& heads,
                  float* out) override {
    const int value_dim = heads.value_dim();
    query = RoundRow(round_attention_, query, heads.head_dim);
    weighted_.assign(value_dim, 0.0);
    double largest =
        rule.sinks == nullptr ? -std::numeric_limits<double>::infinity() : double{rule.sinks[head]};
    double total = std::isinf(largest) ? 0 : 1;
    // The positions that it sees, in order: anchors, then its window.
    const std::int32_t window = rule.WindowBegin(place.position);
    const std::int32_t anchors = std::min(rule.anchors, window);
    const std::int32_t seen = anchors + place.position + 1 - window;
    for (std::int32_t begin = 0; begin < seen; begin += kBlockSize) {
      const int count = std::min(kBlockSize, seen - begin);
      std::int32_t slots[kBlockSize];
      double scores[kBlockSize];
      double new_largest = largest;
      for (int i = 0; i < count; ++i) {
        const std::int32_t number = begin + i;
        const std::int32_t position = number < anchors ? number : window + number - anchors;
        slots[i] = reference::SlotAt(plan, place, places, position);
        scores[i] = rule.scale * Dot(query, keys + slots[i] * stride, heads.head_dim);
        if (rule.score_cap != 0) {
          const double cap = rule.score_cap;
          scores[i] = cap * std::tanh(scores[i] / cap);
        }
        new_largest = std::max(new_largest, scores[i]);
      }
      const double shrink = std::exp(largest - new_largest);
      largest = new_largest;
      total *= shrink;
      for (double& sum : weighted_) sum *= shrink;
      for (int i = 0; i < count; ++i) {
        const double weight = round_attention_(static_cast<float>(std::exp(scores[i] - largest)));
        total += weight;
        for (int d = 0; d < value_dim; ++d) weighted_[d] += weight * values[slots[i] * stride + d];
      }
    }
    for (int d = 0; d < value_dim; ++d) out[d] = static_cast<float>(weighted_[d] / total);
  }

  float (*round_products_)(float);
  float (*round_attention_)(float);
  Router router_;
  std::vector<float> rounded_;    // One matrix input row, or one query.
  std::vector<double> weighted_;  // The running sum of one head's values.
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(Numerics numerics) {
  return std::make_unique<ReferenceBackend>(numerics);
}

}  // namespace foretoken
