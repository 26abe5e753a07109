#include "base/numbers/integers.h"
#include "core/model/decoder/mixers.h"

#include <algorithm>

#include "core/model/decoder/float_buffer.h"

namespace foretoken {

void DeltaMixer::GrowTo(std::size_t rows, const ModelConfig& config) {
  int inputs = 0;
  int values = 0;
  for (const LayerSpec& layer : config.layers) {
    inputs = std::max(inputs, layer.is_recurrent() ? layer.delta.row_width() : 0);
    values = std::max(values, layer.is_recurrent() ? layer.delta.value_width() : 0);
  }
  GrowFloats(inputs_, rows * inputs);
  GrowFloats(heads_, rows * 2 * Size(values));
}

void DeltaMixer::Mix(const LayerSpec& spec, const LayerWeights& layer, const NormSpec& norm,
                     int number, const float* x, const BatchPlan& plan, Backend* backend,
                     KvStore& kv, float* out) {
  const DeltaShape& shape = spec.delta;
  const int rows = plan.rows.size();
  float* const heads = heads_.as<float>();
  Multiply(layer.delta.inputs, x, rows, backend, inputs_.as<float>());
  backend->DeltaRule(plan, layer.delta.learned(), number, inputs_.as<float>(), kv, heads);
  const PartsNorm of_heads{NormKind::kRms, norm.epsilon, layer.delta.norm.gain.as<float>()};
  backend->NormParts(of_heads, rows, std::int64_t{2} * shape.value_width(), shape.value_heads,
                     shape.value_dim, heads + shape.value_width());
  backend->GatedMul(Activation::kSilu, heads, rows, shape.value_width(), out);
}

}  // namespace foretoken
