#include "core/backend/testing/reference_parts.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/numbers/philox.h"
#include "core/backend/noise.h"
#include "core/tensor/half.h"

namespace foretoken::reference {
namespace {

void RotateHead(const float* cos, const float* sin, int dims, float* head) {
  const int half = dims / 2;
  for (int i = 0; i < half; ++i) {
    const float low = head[i];
    const float high = head[i + half];
    head[i] = low * cos[i] - high * sin[i];
    head[i + half] = high * cos[i] + low * sin[i];
  }
}

std::int64_t SlotsOf(const KvShape& shape, const KvLayer& layer) {
  return shape.BlocksOf(layer) * kBlockSize;
}

// Numbers of a slot's keys, and of its values where there are any, in one layer.
std::int64_t SlotWidth(const KvLayer& layer) {
  return std::int64_t{layer.kv_heads} * layer.head_dim;
}

// The keys, and the values, that a layer keeps, in floats.
struct LayerKv {
  const float* keys;
  const float* values;         //< Where the keys are, where those hold the values.
  const std::int32_t* places;  //< The places of its blocks (KvStore::PlacesIn).
};
LayerKv LayerOf(const KvStore& kv, int layer) {
  const KvStore::Begin& begin = kv.layers[layer];
  const float* const keys = kv.keys.as<float>() + begin.keys / sizeof(float);
  const std::int32_t* const places = kv.PlacesIn(layer);
  if (kv.shape.layers[layer].latent > 0) return {keys, keys, places};
  return {keys, kv.values.as<float>() + begin.values / sizeof(float), places};
}

}  // namespace

std::int32_t SlotAt(const BatchPlan& plan, const RowPlace& place, const std::int32_t* places,
                    std::int32_t p) {
  if (p < place.trunk_length) {
    return SlotIn(places,
                  plan.block_tables[place.sequence][p / kBlockSize] * kBlockSize + p % kBlockSize);
  }
  return SlotIn(places, plan.tail_slots[place.tail_begin + p - place.trunk_length]);
}

std::size_t ReferenceBase::KvBytes(const KvShape& shape) const {
  std::int64_t numbers = 0;
  for (const KvLayer& layer : shape.layers) {
    numbers += SlotsOf(shape, layer) * SlotWidth(layer) * (layer.latent > 0 ? 1 : 2);
  }
  return sizeof(float) * numbers + BytesBesideKv(shape);
}

KvStore ReferenceBase::AllocateKv(const KvShape& shape) {
  KvStore kv{shape, {}, {}, {}};
  KvStore::Begin end;
  for (const KvLayer& layer : shape.layers) {
    kv.layers.push_back(end);
    const auto bytes = Size(SlotsOf(shape, layer) * SlotWidth(layer)) * sizeof(float);
    end.keys += bytes;
    if (layer.latent == 0) end.values += bytes;
  }
  kv.keys = Buffer(end.keys);
  kv.values = Buffer(end.values);
  AllocateBesideKv(&kv);
  return kv;
}

void ReferenceBase::CopyKv(KvStore& kv, std::span<const KvMove> moves) {
  CopyBesideKv(kv, moves);
  for (int layer = 0; layer < std::ssize(kv.shape.layers); ++layer) {
    const std::int64_t width = SlotWidth(kv.shape.layers[layer]);
    const LayerKv kept = LayerOf(kv, layer);
    auto* const keys = const_cast<float*>(kept.keys);
    auto* const values = const_cast<float*>(kept.values);
    for (const KvMove& move : moves) {
      const std::int64_t from = SlotIn(kept.places, move.from) * width;
      const std::int64_t to = SlotIn(kept.places, move.to) * width;
      if (from == to) continue;
      std::copy_n(keys + from, width, keys + to);
      if (values != keys) std::copy_n(values + from, width, values + to);
    }
  }
}

float RoundToBf16(float value) { return BFloat16ToFloat(FloatToBFloat16(value)); }

void KeepRounded(const float* head, int count, float* kept) {
  std::transform(head, head + count, kept, RoundToBf16);
}
void KeepExactly(const float* head, int count, float* kept) { std::copy_n(head, count, kept); }

std::vector<InputBlock> QuantizeHead(const float* head, int count) {
  std::vector<float> padded(head, head + count);
  padded.resize(Size((count + kInputBlock - 1) / kInputBlock * kInputBlock));
  return QuantizeInputs(padded.data(), std::ssize(padded));
}

void ReferenceBase::RotateAndStore(const RopeTable* rope, const BatchPlan& plan,
                                   const HeadShape& heads, int layer, float* qkv, KvStore& kv) {
  const int head_dim = heads.head_dim;
  const std::int64_t width = std::int64_t{heads.kv_heads} * head_dim;
  const LayerKv kept = LayerOf(kv, layer);
  auto* const keys = const_cast<float*>(kept.keys);
  auto* const values = const_cast<float*>(kept.values);
  const std::int64_t slots = SlotsOf(kv.shape, kv.shape.layers[layer]);
  for (const RowPlace& place : plan.rows) {
    const std::int64_t slot = SlotIn(kept.places, place.slot);
    FT_CHECK(slot >= 0 && slot < slots, "slot {} of {}", slot, slots);
    for (int h = 0; rope != nullptr && h < heads.rotated_heads(); ++h) {
      FT_CHECK(place.position >= 0 && place.position < rope->positions);
      const std::int64_t at = std::int64_t{place.position} * (rope->dims / 2);
      RotateHead(rope->cos.as<float>() + at, rope->sin.as<float>() + at, rope->dims,
                 qkv + std::int64_t{h} * head_dim + heads.latent);
    }
    const std::int64_t queries = std::int64_t{heads.heads} * head_dim;
    if (rope != nullptr && rope->query_scales.bytes() > 0) {
      const float scale = rope->query_scales.as<float>()[place.position];
      for (std::int64_t i = 0; i < queries; ++i) qkv[i] *= scale;
    }
    const float* key = qkv + queries;
    const std::int64_t at = slot * width;
    for (std::int64_t i = 0; !heads.queries_only && i < width; i += head_dim) {
      keep_(key + i, head_dim, keys + at + i);
      if (heads.latent == 0) keep_(key + width + i, head_dim, values + at + i);
    }
    qkv += heads.row_width();
  }
}

void ReferenceBase::NormParts(const PartsNorm& norm, int rows, std::int64_t stride, int parts,
                              int width, float* x) {
  for (int row = 0; row < rows; ++row, x += stride) {
    for (int part = 0; part < parts; ++part) {
      float* at = x + std::int64_t{part} * width;
      const float* gain = norm.gain + (norm.gain_of_each ? std::int64_t{part} * width : 0);
      if (norm.kind == NormKind::kRms) {
        RmsNorm(at, gain, norm.epsilon, 1, width, at);
      } else {
        LayerNorm(at, gain, nullptr, norm.epsilon, 1, width, at);
      }
    }
  }
}

void ReferenceBase::FillRows(const float* x, int rows, std::int64_t width, float* y) {
  for (int row = 0; row < rows; ++row) std::copy_n(x, width, y + row * width);
}

void GroupMaxima(const float* logits, int rows, std::int64_t outputs, float* maxima) {
  for (int row = 0; row < rows; ++row) {
    for (std::int64_t begin = 0; begin < outputs; begin += kLogitGroup) {
      float most = -std::numeric_limits<float>::infinity();
      for (std::int64_t i = begin; i < std::min(outputs, begin + kLogitGroup); ++i) {
        const float logit = logits[row * outputs + i];
        if (logit > most) most = logit;
      }
      *maxima++ = most;
    }
  }
}

void ReferenceBase::Scale(float factor, std::int64_t count, float* x) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

void ReferenceBase::Add(const float* x, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
}

void ReferenceBase::MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y,
                                 float* maxima) {
  MatMul(weights, x, rows, y);
  GroupMaxima(y, rows, weights.outputs, maxima);
}

void ReferenceBase::Attention(const BatchPlan& plan, const HeadShape& heads,
                              const AttentionRule& rule, int layer, const float* qkv,
                              const KvStore& kv, float* out) {
  const std::int64_t stride = std::int64_t{heads.kv_heads} * heads.head_dim;
  const LayerKv kept = LayerOf(kv, layer);
  const int group = heads.heads / heads.kv_heads;
  for (const RowPlace& place : plan.rows) {
    for (int h = 0; h < heads.heads; ++h) {
      const std::int64_t at = std::int64_t{h / group} * heads.head_dim;
      AttendHead(plan, place, kept.places, rule, h, qkv + std::int64_t{h} * heads.head_dim,
                 kept.keys + at, kept.values + at, stride, heads, out);
      out += heads.value_dim();
    }
    qkv += heads.row_width();
  }
}

std::size_t ReferenceBase::NoisyTop(Logits logits, int vocabulary, float temperature,
                                    NoiseKey noise, std::span<Candidate> best) {
  std::size_t count = 0;
  for (Token token = 0; token < vocabulary; ++token) {
    const std::uint32_t draw = PhiloxDraw(
        noise.seed, noise.position, static_cast<std::uint32_t>(token), NoisePurpose::kSampling);
    const double score = NoisyScore(logits.values[token], temperature, draw);
    if (!(score > -std::numeric_limits<double>::infinity())) continue;
    // Tokens come in ascending order, so an equal score stays behind the earlier one.
    std::size_t rank = count;
    while (rank > 0 && score > best[rank - 1].score) --rank;
    if (rank == best.size()) continue;
    if (count < best.size()) ++count;
    std::move_backward(best.begin() + rank, best.begin() + count - 1, best.begin() + count);
    best[rank] = Candidate{token, score};
  }
  return count;
}

}  // namespace foretoken::reference
