#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/numbers/integers.h"
#include "core/backend/conformance_testing.h"

namespace foretoken {

/// Keys and values of one sequence for attention tests: qkv rows by position, and for each position
/// the slot that it is stored in.
struct AttentionCase {
  HeadShape heads;
  int positions = 0;
  std::vector<float> qkv;
  RopeTable rope;
  std::vector<float> sinks;
  AttentionRule rule;

  AttentionCase(HeadShape shape, int count, std::uint32_t seed, int dims = 0)
      : heads(shape), positions(count) {
    qkv = Random(Size(count * shape.row_width()), seed);
    sinks = Random(Size(shape.heads), seed + 1);
    rule.scale = 1 / std::sqrt(double(shape.head_dim));
    const int most = shape.head_dim - shape.latent;
    rope.dims = dims == 0 ? most : std::min(dims, most);
    const int half = rope.dims / 2;
    rope.positions = count;
    rope.cos = Buffer(Size(count * half) * sizeof(float));
    rope.sin = Buffer(Size(count * half) * sizeof(float));
    for (int p = 0; p < count; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(1e4, -double(i) / half);
        rope.cos.as<float>()[p * half + i] = static_cast<float>(std::cos(angle));
        rope.sin.as<float>()[p * half + i] = static_cast<float>(std::sin(angle));
      }
    }
  }
};

/// Positions [0, trunk) lie in `blocks`, the rest in `tail`.
struct Placement {
  std::vector<std::int32_t> blocks;
  int trunk = 0;
  std::vector<std::int32_t> tail;

  std::int32_t SlotOf(int position) const {
    if (position >= trunk) return tail[position - trunk];
    return blocks[position / kBlockSize] * kBlockSize + position % kBlockSize;
  }
};

inline constexpr int kStoreBlocks = 12;
/// Layer 0 keeps nothing, layer 2 keeps more than the one that is tested, which is layer 1.
inline std::vector<KvLayer> LayersOf(const HeadShape& heads) {
  return {
      {}, {heads.kv_heads, heads.head_dim, heads.latent}, {heads.kv_heads + 1, 2 * heads.head_dim}};
}

/// Stores every position's key and value in layer 1; returns the rotated qkv rows.
inline std::vector<float> StoreAll(Backend* backend, const AttentionCase& c,
                                   const Placement& placement, KvStore* kv) {
  std::vector<float> qkv = c.qkv;
  std::vector<RowPlace> rows;
  for (int p = 0; p < c.positions; ++p) rows.push_back({p, placement.SlotOf(p), 0, p + 1, 0});
  const std::int32_t* table = placement.blocks.data();
  backend->RotateAndStore(&c.rope, {rows, {&table, 1}, placement.tail}, c.heads, 1, qkv.data(),
                          *kv);
  return qkv;
}

/// A sequence whose keys and values a backend has stored.
class StoredCase {
 public:
  StoredCase(Backend* backend, const AttentionCase& c, const Placement& placement)
      : backend_(backend),
        case_(c),
        placement_(placement),
        kv_(backend->AllocateKv({LayersOf(c.heads), kStoreBlocks})),
        rotated_(StoreAll(backend, c, placement, &kv_)) {}

  /// Attention of the given positions, all in one call.
  std::vector<float> AttendAt(const std::vector<int>& queries) const {
    const HeadShape& heads = case_.heads;
    std::vector<float> qkv;
    std::vector<RowPlace> rows;
    for (const int p : queries) {
      const auto width = heads.row_width();
      qkv.insert(qkv.end(), rotated_.begin() + p * width, rotated_.begin() + (p + 1) * width);
      rows.push_back({p, placement_.SlotOf(p), 0, std::min(p + 1, placement_.trunk), 0});
    }
    std::vector<float> out(queries.size() * Size(heads.heads * heads.value_dim()));
    const std::int32_t* table = placement_.blocks.data();
    backend_->Attention({rows, {&table, 1}, placement_.tail}, heads, case_.rule, 1, qkv.data(), kv_,
                        out.data());
    return out;
  }

  /// The qkv rows with their positions turned in.
  const std::vector<float>& rotated() const { return rotated_; }

 private:
  Backend* backend_;
  const AttentionCase& case_;
  Placement placement_;
  KvStore kv_;
  std::vector<float> rotated_;
};

/// Attention of the given positions, all in one call, of a sequence that is stored for it.
inline std::vector<float> AttendAt(Backend* backend, const AttentionCase& c,
                                   const Placement& placement, const std::vector<int>& queries) {
  return StoredCase(backend, c, placement).AttendAt(queries);
}

inline std::vector<int> Range(int begin, int end) {
  std::vector<int> values(end - begin);
  std::iota(values.begin(), values.end(), begin);
  return values;
}

}  // namespace foretoken
