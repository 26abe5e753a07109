#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/reference/quantized_product.h"

// What the reference backends do alike: nothing of it depends on how numbers are rounded, but for
// rotations, which have one order of operations everywhere.

namespace foretoken::reference {

std::int64_t SlotsOf(const KvShape& shape, const KvLayer& layer);
/// Numbers of a slot's keys, and of its values where there are any, in one layer.
std::int64_t SlotWidth(const KvLayer& layer);
/// Where position `p` of a row's path lies in a layer whose blocks have these `places`.
std::int32_t SlotAt(const BatchPlan& plan, const RowPlace& place, const std::int32_t* places,
                    std::int32_t p);

/// The keys, and the values, that a layer keeps, in floats.
struct LayerKv {
  const float* keys;
  const float* values;         ///< Where the keys are, where those hold the values.
  const std::int32_t* places;  ///< The places of its blocks (KvStore::PlacesIn).
};
LayerKv LayerOf(const KvStore& kv, int layer);

/// KV in floats, [slots, kv_heads, head_dim] of each layer.
KvStore AllocateFloats(const KvShape& shape);
std::size_t KvFloatBytes(const KvShape& shape);
void CopySlots(KvStore& kv, std::span<const KvMove> moves);

float RoundToBf16(float value);

/// Writes a head's key or value as it is kept, `count` floats.
using KeepHead = void (*)(const float* head, int count, float* kept);
void KeepRounded(const float* head, int count, float* kept);
void KeepExactly(const float* head, int count, float* kept);

/// A head's key or value in blocks, as if zeros followed.
std::vector<InputBlock> QuantizeHead(const float* head, int count);

/// Rotates queries and keys of `qkv` in place, scales queries and stores what `keep` makes of keys
/// and values.
void RotateAndStoreRows(const RopeTable* rope, const BatchPlan& plan, const HeadShape& heads,
                        int layer, KeepHead keep, float* qkv, KvStore& kv);

/// Backend::NormParts, part by part.
void NormParts(Backend* backend, const PartsNorm& norm, int rows, std::int64_t stride, int parts,
               int width, float* x);

void FillRows(const float* x, int rows, std::int64_t width, float* y);

/// The largest of each kLogitGroup of `rows` rows of logits.
void GroupMaxima(const float* logits, int rows, std::int64_t outputs, float* maxima);

/// Backend::NoisyTop, by plain loops in double.
std::size_t NoisyTopOf(Logits logits, int vocabulary, float temperature, NoiseKey noise,
                       std::span<Candidate> best);

}  // namespace foretoken::reference
