#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace foretoken {

/// Plain loops on one thread with float64 accumulation: what every other backend is compared with.
/// Weights and KV are kept as float32. Where the precision is kBF16, weights and inputs of matrix
/// products are rounded to bfloat16, and where KV is, keys, values, queries and the attention
/// probabilities: that is where a fast backend rounds too. KV in Q8_0 is rounded to the numbers
/// that its blocks stand for.
///
/// Matrices are [outputs, inputs] row-major; KV is [layers, slots, kv_heads, head_dim].
std::unique_ptr<Backend> MakeReferenceBackend(Numerics numerics);

/// The portable arithmetic (Precision::kPortable) in plain loops on one thread: every other backend
/// of it gives the same bits.
std::unique_ptr<Backend> MakePortableReference(KvFormat kv = KvFormat::kBF16);

}  // namespace foretoken
