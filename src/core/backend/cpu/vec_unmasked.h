#pragma once

// Parts of a vector, for instruction sets without masks. Included at the end of their vec_*.h.

namespace foretoken::cpu::FT_ISA {
namespace {

// The first n lanes; the others are 0, and are not stored.
FT_INLINE Vec LoadFirst(const float* p, int n) {
  if (n >= 16) return Load(p);
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}

FT_INLINE void StoreFirst(float* p, int n, Vec v) {
  if (n >= 16) {
    Store(p, v);
    return;
  }
  float lanes[16];
  Store(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
