#include "base/numbers/integers.h"
#include "core/model/decoder/mixers.h"

#include <algorithm>

namespace foretoken {
namespace {

// Lays x [rows, width] into every second stretch of `pairs` [rows, 2 * width].
void LayBeside(const float* x, std::size_t rows, int width, bool second, float* pairs) {
  float* to = pairs + (second ? width : 0);
  for (std::size_t r = 0; r < rows; ++r, x += width, to += 2 * std::ptrdiff_t{width}) {
    std::copy_n(x, width, to);
  }
}

void NormaliseKept(const FeatureSpec& spec, const FeatureWeights& weights, float epsilon, int rows,
                   Backend* backend, float* kept) {
  const int parts = weights.tap_norms.size();
  const int width = parts == 1 ? spec.tap_width() : spec.tapped;
  for (int i = 0; i < parts; ++i) {
    const PartsNorm norm{
        .kind = NormKind::kRms, .epsilon = epsilon, .gain = weights.tap_norms[i].gain.as<float>()};
    backend->NormParts(norm, rows, spec.tap_width(), 1, width,
                       kept + std::ptrdiff_t{i} * spec.tapped);
  }
}

}  // namespace

void FeatureMixer::GrowTo(std::size_t rows, const ModelConfig& config) {
  const FeatureSpec& spec = config.feature;
  if (!spec.there()) return;
  const std::size_t hidden = config.hidden;
  GrowFloats(kept_, rows * spec.tap_width());
  GrowFloats(reduced_, rows * hidden);
  GrowFloats(features_, rows * hidden);
  GrowFloats(normed_, rows * hidden);
  GrowFloats(pairs_, rows * 2 * hidden);
}

void FeatureMixer::MakeFeatures(const ModelConfig& config, const FeatureWeights& weights,
                                std::span<const ForwardRow> rows, Backend* backend) {
  const FeatureSpec& spec = config.feature;
  const int width = spec.tap_width();
  float* const features = features_.as<float>();
  float* const kept = kept_.as<float>();
  int count = 0;
  for (const ForwardRow& row : rows) {
    if (row.feature.left != nullptr) continue;
    float* const to = kept + std::ptrdiff_t{count++} * width;
    if (row.feature.kept != nullptr) {
      std::transform(row.feature.kept, row.feature.kept + width, to, BFloat16ToFloat);
    } else if (spec.masked) {
      std::copy_n(weights.mask.as<float>(), width, to);
    } else {
      std::fill_n(to, width, 0.0F);
    }
  }
  NormaliseKept(spec, weights, config.norm.epsilon, count, backend, kept);
  const float* reduced = kept;  // As wide as the stream where nothing reduces it.
  if (spec.reduced && count > 0) {
    Multiply(weights.reduction, kept, count, backend, reduced_.as<float>());
    reduced = reduced_.as<float>();
  }
  float* to = features;
  for (const ForwardRow& row : rows) {
    const bool own = row.feature.left != nullptr;
    to = std::copy_n(own ? row.feature.left : reduced, config.hidden, to);
    if (!own) reduced += config.hidden;
  }
}

const float* FeatureMixer::Context(const ModelConfig& config, const FeatureWeights& weights,
                                   std::span<const ForwardRow> rows, Backend* backend) {
  MakeFeatures(config, weights, rows, backend);
  backend->RmsNorm(features_.as<float>(), weights.feature_norm.gain.as<float>(),
                   config.norm.epsilon, Int(rows.size()), config.hidden, normed_.as<float>());
  return normed_.as<float>();
}

void FeatureMixer::Begin(const ModelConfig& config, const FeatureWeights& weights,
                         std::span<const ForwardRow> rows, Backend* backend, float* stream) {
  const FeatureSpec& spec = config.feature;
  const int count = rows.size();
  MakeFeatures(config, weights, rows, backend);
  float* const pairs = pairs_.as<float>();
  const float* features = features_.as<float>();
  const std::size_t numbers = rows.size() * Size(config.hidden);
  if (spec.enters_stream()) {
    std::copy_n(features, numbers, stream);
    return;
  }
  const auto lay = [&](const float* x, const NormWeights& norm, bool second) {
    if (norm.there()) {
      backend->RmsNorm(x, norm.gain.as<float>(), config.norm.epsilon, count, config.hidden,
                       normed_.as<float>());
      x = normed_.as<float>();
    }
    LayBeside(x, rows.size(), config.hidden, second, pairs);
    return x;
  };
  lay(stream, weights.token_norm, spec.feature_first);
  const float* const laid = lay(features, weights.feature_norm, !spec.feature_first);
  if (spec.join == FeatureSpec::Join::kProjected) {
    return Multiply(weights.join, pairs, count, backend, stream);
  }
  std::copy_n(spec.normed_stream ? laid : features, numbers, stream);
}

}  // namespace foretoken
