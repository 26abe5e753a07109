#include "base/numbers/integers.h"
#include "core/model/decoder/mixers.h"

#include <algorithm>

#include "core/model/decoder/float_buffer.h"

namespace foretoken {
namespace {

// The epsilon of the norms within, whatever that of the model's other norms is.
constexpr float kEpsilon = 1e-6F;

// Copies `width` numbers that are rotated with their neighbours, so that number i is rotated with
// i + width / 2.
void CopyHalvesApart(const float* from, int width, float* to) {
  const int half = width / 2;
  for (int i = 0; i < half; ++i) {
    to[i] = from[2 * i];
    to[half + i] = from[2 * i + 1];
  }
}

}  // namespace

void LatentMixer::GrowTo(std::size_t rows, const ModelConfig& config) {
  for (const LayerSpec& layer : config.layers) {
    const AttentionSpec& spec = layer.attention;
    if (!spec.is_latent()) continue;
    const LatentSpec& latent = spec.latent;
    const auto heads = rows * spec.heads;
    const auto rotated = spec.head_dim - latent.kv_rank;
    GrowFloats(compressed_, rows * latent.query_rank);
    GrowFloats(queries_, heads * Size(latent.nope_dim + rotated));
    GrowFloats(keys_, rows * spec.head_dim);
    GrowFloats(by_head_, heads * Size(std::max(latent.nope_dim, latent.kv_rank)));
    GrowFloats(made_, heads * Size(std::max(latent.kv_rank, latent.value_dim)));
    groups_.reserve(spec.heads);
  }
}

void LatentMixer::GroupByHead(int heads, int rows) {
  groups_.clear();
  for (int head = 0; head < heads; ++head)
    groups_.push_back({head, head * rows, (head + 1) * rows});
}

void LatentMixer::Fold(const AttentionSpec& spec, const LatentWeights& weights, const float* x,
                       int rows, Backend* backend, float* qkv) {
  const int rank = spec.latent.kv_rank;
  const int nope = spec.latent.nope_dim;
  const int rotated = spec.head_dim - rank;
  const float* from = x;
  if (spec.latent.query_rank > 0) {
    float* const compressed = compressed_.as<float>();
    Multiply(weights.query_down, x, rows, backend, compressed);
    backend->RmsNorm(compressed, weights.query_norm.gain.as<float>(), kEpsilon, rows,
                     spec.latent.query_rank, compressed);
    from = compressed;
  }
  Multiply(weights.query, from, rows, backend, queries_.as<float>());
  Multiply(weights.kv_down, x, rows, backend, keys_.as<float>());
  const PartsNorm norm{NormKind::kRms, kEpsilon, weights.kv_norm.gain.as<float>(), false};
  backend->NormParts(norm, rows, spec.head_dim, 1, rank, keys_.as<float>());

  const auto query_of = [&](int row, int head) {
    return queries_.as<float>() + (std::ptrdiff_t{row} * spec.heads + head) * (nope + rotated);
  };
  float* to = by_head_.as<float>();
  for (int head = 0; head < spec.heads; ++head) {
    for (int row = 0; row < rows; ++row, to += nope) std::copy_n(query_of(row, head), nope, to);
  }
  GroupByHead(spec.heads, rows);
  backend->MatMulGroups(weights.key_up, groups_, nullptr, by_head_.as<float>(), made_.as<float>());

  const float* key = keys_.as<float>();
  for (int row = 0; row < rows; ++row, key += spec.head_dim) {
    for (int head = 0; head < spec.heads; ++head, qkv += spec.head_dim) {
      std::copy_n(made_.as<float>() + (std::ptrdiff_t{head} * rows + row) * rank, rank, qkv);
      CopyHalvesApart(query_of(row, head) + nope, rotated, qkv + rank);
    }
    std::copy_n(key, rank, qkv);
    CopyHalvesApart(key + rank, rotated, qkv + rank);
    qkv += spec.head_dim;
  }
}

void LatentMixer::Unfold(const AttentionSpec& spec, const LatentWeights& weights, int rows,
                         Backend* backend, float* attended) {
  const int rank = spec.latent.kv_rank;
  const int width = spec.latent.value_dim;
  float* to = by_head_.as<float>();
  for (int head = 0; head < spec.heads; ++head) {
    for (int row = 0; row < rows; ++row, to += rank) {
      std::copy_n(attended + (std::ptrdiff_t{row} * spec.heads + head) * rank, rank, to);
    }
  }
  GroupByHead(spec.heads, rows);
  backend->MatMulGroups(weights.value_up, groups_, nullptr, by_head_.as<float>(),
                        made_.as<float>());
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < spec.heads; ++head, attended += width) {
      std::copy_n(made_.as<float>() + (std::ptrdiff_t{head} * rows + row) * width, width, attended);
    }
  }
}

}  // namespace foretoken
