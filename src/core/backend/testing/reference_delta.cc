#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/backend/testing/portable_arithmetic.h"
#include "core/backend/testing/reference_parts.h"

namespace foretoken::reference {
namespace {

constexpr float kUnitEpsilon = 1e-6F;

float Product(const float* x, const float* y, int width) {
  Lanes sums = {};
  for (int i = 0; i < width; ++i) sums[i % kLanes] = std::fma(x[i], y[i], sums[i % kLanes]);
  return SumOf(sums);
}

void MakeUnit(float factor, int width, float* x) {
  const float inverse = 1.0F / std::sqrt(Product(x, x, width) + kUnitEpsilon);
  for (int i = 0; i < width; ++i) x[i] = x[i] * inverse * factor;
}

class Rows {
 public:
  Rows(const BatchPlan& plan, const DeltaWeights& weights, int layer, KvStore& kv)
      : plan_(plan),
        weights_(weights),
        layer_(layer),
        places_(kv.DeltaPlaces()),
        store_(kv.delta),
        shape_(kv.delta.shape) {}

  void Keep(const RowPlace& place, const float* x) {
    std::copy_n(x, shape_.conv_width(), Slot(SlotIn(places_, place.slot)));
  }

  // Rows come in order along every path.
  void Compute(const RowPlace& place, const float* x, float* out) {
    float* const slot = Slot(SlotIn(places_, place.slot));
    float* const keys = slot + shape_.conv_width();
    float* const written = keys + shape_.key_width();
    float* const decays = written + shape_.value_width();
    const std::vector<float> queries = Convolve(place, keys);
    const float* const gates = x + shape_.conv_width();
    const float* const writes = gates + shape_.value_width();
    std::copy_n(gates, shape_.value_width(), out);
    for (int head = 0; head < shape_.value_heads; ++head) {
      const DeltaGates own = GatesOf(writes[head], writes[shape_.value_heads + head],
                                     weights_.rates[head], weights_.rate_bias[head]);
      decays[head] = own.decay;
      ReadState(StateBefore(place, head), own, queries.data() + KeyOffset(head),
                keys + KeyOffset(head), written + head * shape_.value_dim,
                out + shape_.value_width() + head * shape_.value_dim);
    }
  }

 private:
  float* Slot(std::int32_t slot) const { return store_.Slot(layer_, slot); }
  int KeyOffset(int head) const { return shape_.KeyOf(head) * shape_.key_dim; }

  // Returns queries; keys, and values where they will be written from, go to `keys`.
  std::vector<float> Convolve(const RowPlace& place, float* keys) const {
    std::vector<float> all(shape_.conv_width(), 0.0F);
    for (int tap = 0; tap < shape_.taps; ++tap) {
      const std::int32_t position = place.position - shape_.taps + 1 + tap;
      if (position < 0) continue;
      const float* const input = Slot(SlotAt(plan_, place, places_, position));
      const float* const taps = weights_.taps + std::int64_t{tap} * shape_.conv_width();
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::fma(taps[i], input[i], all[i]);
    }
    for (float& y : all) y = y / (1.0F + Exp(std::min(0.0F - y, 88.0F)));
    const float factor = 1.0F / std::sqrt(static_cast<float>(shape_.key_dim));
    for (int head = 0; head < shape_.key_heads; ++head) {
      float* const query = all.data() + std::int64_t{head} * shape_.key_dim;
      MakeUnit(factor, shape_.key_dim, query);
      MakeUnit(1.0F, shape_.key_dim, query + shape_.key_width());
    }
    std::copy(all.begin() + shape_.key_width(), all.end(), keys);
    return all;
  }

  std::vector<float> StateBefore(const RowPlace& place, int head) const {
    std::vector<float> state(Size(shape_.key_dim * shape_.value_dim), 0.0F);
    for (std::int32_t p = 0; p < place.position; ++p) {
      const std::int32_t at = SlotAt(plan_, place, places_, p);
      FT_CHECK(at >= 0, "the plain loops need every position, but {} is not kept", p);
      const float* const slot = Slot(at);
      const float* const key = slot + shape_.conv_width() + KeyOffset(head);
      const float* const all_written = slot + shape_.conv_width() + shape_.key_width();
      const float* const written = all_written + head * shape_.value_dim;
      const float decay = all_written[shape_.value_width() + head];
      for (int i = 0; i < shape_.key_dim; ++i) {
        for (int j = 0; j < shape_.value_dim; ++j) {
          float& cell = state[i * shape_.value_dim + j];
          cell = std::fma(key[i], written[j], decay * cell);
        }
      }
    }
    return state;
  }

  void ReadState(const std::vector<float>& state, const DeltaGates& gates, const float* query,
                 const float* key, float* written, float* out) const {
    const float along = Product(query, key, shape_.key_dim);
    for (int j = 0; j < shape_.value_dim; ++j) {
      float remembered = 0;
      float read = 0;
      for (int i = 0; i < shape_.key_dim; ++i) {
        const float cell = state[i * shape_.value_dim + j];
        remembered = std::fma(cell, key[i], remembered);
        read = std::fma(cell, query[i], read);
      }
      written[j] = (written[j] - gates.decay * remembered) * gates.write;
      out[j] = std::fma(along, written[j], gates.decay * read);
    }
  }

  const BatchPlan& plan_;
  const DeltaWeights& weights_;
  int layer_;
  const std::int32_t* places_;
  DeltaStore& store_;
  const DeltaShape& shape_;
};

}  // namespace

void ReferenceBase::DeltaRule(const BatchPlan& plan, const DeltaWeights& weights, int layer,
                              const float* x, KvStore& kv, float* out) {
  Rows rows(plan, weights, layer, kv);
  const DeltaShape& shape = kv.delta.shape;
  const std::int64_t width = shape.row_width();
  for (std::size_t r = 0; r < plan.rows.size(); ++r) {
    rows.Keep(plan.rows[r], x + static_cast<std::int64_t>(r) * width);
  }
  for (std::size_t r = 0; r < plan.rows.size(); ++r) {
    rows.Compute(plan.rows[r], x + static_cast<std::int64_t>(r) * width,
                 out + static_cast<std::int64_t>(r) * 2 * shape.value_width());
  }
}

}  // namespace foretoken::reference
