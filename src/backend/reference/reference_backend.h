#pragma once

#include <memory>

#include "backend/backend.h"

namespace foretoken {

/// Plain loops on one thread with float64 accumulation: what every other backend is compared with.
/// Weights and KV are kept as float32; under kBF16 their values, the inputs of matrix products and
/// the attention probabilities are rounded to bfloat16, which is where a fast backend rounds too.
///
/// Matrices are [outputs, inputs] row-major; KV is [layers, slots, kv_heads, head_dim].
std::unique_ptr<Backend> MakeReferenceBackend(Precision precision);

/// The portable arithmetic (Precision::kPortable) in plain loops on one thread: every other backend
/// of it gives the same bits.
std::unique_ptr<Backend> MakePortableReference();

}  // namespace foretoken
