#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "model/llama/llama_weights.h"

namespace foretoken {
namespace {

using Shape = std::vector<std::int64_t>;

std::string FormatShape(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Looks tensors up by name and checks their shapes.
class TensorSource {
 public:
  explicit TensorSource(const ModelFolder& folder) : folder_(folder) {}

  Result<TensorView> Find(const std::string& name, const Shape& shape) const {
    const TensorView* view = folder_.Find(name);
    if (view == nullptr) {
      return InvalidInput(fmt::format("{}: lacks tensor {} of shape {}",
                                      folder_.directory().string(), name, FormatShape(shape)));
    }
    if (view->shape != shape) {
      return InvalidInput(fmt::format("{}: tensor {} must have shape {} by config.json but has {}",
                                      folder_.directory().string(), name, FormatShape(shape),
                                      FormatShape(view->shape)));
    }
    return *view;
  }

  // Biases mean a model that would be computed wrongly, whatever its config says.
  Status RefuseBiases() const {
    for (const auto& [name, view] : folder_.tensors()) {
      if (name.starts_with("model.layers.") && name.ends_with("_proj.bias")) {
        return InvalidInput(fmt::format("{}: tensor {} is a bias, which is not supported",
                                        folder_.directory().string(), name));
      }
    }
    return {};
  }

 private:
  const ModelFolder& folder_;
};

Buffer LoadGain(const TensorView& view) {
  Buffer gain(static_cast<std::size_t>(view.elements()) * sizeof(float));
  LoadElements(view, 0, view.elements(), gain.as<float>());
  return gain;
}

// The tensors of one layer, found and checked.
struct LayerTensors {
  TensorView attention_norm, mlp_norm, query, key, value, output, gate, up, down;
};

Result<LayerTensors> FindLayer(const TensorSource& source, const ModelConfig& config, int layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const std::int64_t hidden = config.hidden;
  const std::int64_t query_width = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t kv_width = std::int64_t{config.kv_heads} * config.head_dim;
  const std::int64_t intermediate = config.intermediate;
  LayerTensors tensors;
  const struct {
    const char* name;
    Shape shape;
    TensorView* view;
  } wanted[] = {
      {"input_layernorm.weight", {hidden}, &tensors.attention_norm},
      {"post_attention_layernorm.weight", {hidden}, &tensors.mlp_norm},
      {"self_attn.q_proj.weight", {query_width, hidden}, &tensors.query},
      {"self_attn.k_proj.weight", {kv_width, hidden}, &tensors.key},
      {"self_attn.v_proj.weight", {kv_width, hidden}, &tensors.value},
      {"self_attn.o_proj.weight", {hidden, query_width}, &tensors.output},
      {"mlp.gate_proj.weight", {intermediate, hidden}, &tensors.gate},
      {"mlp.up_proj.weight", {intermediate, hidden}, &tensors.up},
      {"mlp.down_proj.weight", {hidden, intermediate}, &tensors.down},
  };
  for (const auto& [name, shape, view] : wanted) {
    FT_ASSIGN_OR_RETURN(*view, source.Find(prefix + name, shape));
  }
  return tensors;
}

// The tensors of a whole model, found and checked.
struct ModelTensors {
  TensorView embedding, norm;
  TensorView lm_head;  // Only of untied embeddings.
  std::vector<LayerTensors> layers;
};

Result<ModelTensors> FindTensors(const ModelFolder& folder, const ModelConfig& config) {
  const TensorSource source(folder);
  FT_RETURN_IF_ERROR(source.RefuseBiases());
  const Shape table{config.vocabulary, config.hidden};
  ModelTensors tensors;
  FT_ASSIGN_OR_RETURN(tensors.embedding, source.Find("model.embed_tokens.weight", table));
  FT_ASSIGN_OR_RETURN(tensors.norm, source.Find("model.norm.weight", {config.hidden}));
  if (!config.tied_embeddings) {
    FT_ASSIGN_OR_RETURN(tensors.lm_head, source.Find("lm_head.weight", table));
  }
  for (int layer = 0; layer < config.layers; ++layer) {
    FT_ASSIGN_OR_RETURN(LayerTensors found, FindLayer(source, config, layer));
    tensors.layers.push_back(std::move(found));
  }
  return tensors;
}

LlamaLayerWeights PackLayer(const LayerTensors& tensors, Backend& backend) {
  LlamaLayerWeights weights;
  weights.attention_norm = LoadGain(tensors.attention_norm);
  weights.mlp_norm = LoadGain(tensors.mlp_norm);
  weights.qkv = backend.Pack(std::array{tensors.query, tensors.key, tensors.value});
  weights.output = backend.Pack(std::array{tensors.output});
  weights.gate_up = backend.Pack(std::array{tensors.gate, tensors.up});
  weights.down = backend.Pack(std::array{tensors.down});
  return weights;
}

// A stream of random BF16 matrices. Each value is one of 256 quantiles of a normal distribution,
// picked by one byte of an xorshift generator: eight values for a few instructions.
class SyntheticSource {
 public:
  explicit SyntheticSource(std::uint64_t seed) : state_(seed * 2 + 0x9E3779B97F4A7C15U) {}

  // [outputs, inputs] with the given standard deviation. The view lives until the next call.
  TensorView Matrix(std::int64_t outputs, std::int64_t inputs, double deviation) {
    std::array<BFloat16, 256> quantiles;
    for (int i = 0; i < 256; ++i) {
      quantiles[i] = FloatToBFloat16(static_cast<float>(deviation * Quantile((i + 0.5) / 256)));
    }
    const std::size_t count = static_cast<std::size_t>(outputs * inputs);
    if (scratch_.bytes() < count * sizeof(BFloat16) + 16) {
      scratch_ = Buffer(count * sizeof(BFloat16) + 16);
    }
    BFloat16* out = scratch_.as<BFloat16>();
    for (std::size_t i = 0; i < count; i += 8) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      for (int byte = 0; byte < 8; ++byte) out[i + byte] = quantiles[state_ >> (8 * byte) & 0xFF];
    }
    return TensorView{DType::kBF16, {outputs, inputs}, scratch_.data()};
  }

 private:
  // A logistic curve near enough to the normal quantile function, of unit variance.
  static double Quantile(double p) { return std::log(p / (1 - p)) * 0.5513; }

  std::uint64_t state_;
  Buffer scratch_;
};

Buffer Ones(int width) {
  Buffer buffer(static_cast<std::size_t>(width) * sizeof(float));
  std::fill_n(buffer.as<float>(), width, 1.0F);
  return buffer;
}

}  // namespace

Status CheckWeights(const ModelFolder& folder, const ModelConfig& config) {
  FT_RETURN_IF_ERROR(FindTensors(folder, config));
  return {};
}

Result<std::shared_ptr<const ModelWeights>> LoadWeights(const ModelFolder& folder,
                                                        const ModelConfig& config,
                                                        Backend* backend) {
  // Everything is checked before anything is packed, so that a bad folder fails at once.
  FT_ASSIGN_OR_RETURN(const ModelTensors tensors, FindTensors(folder, config));
  auto weights = std::make_shared<LlamaWeights>(config, *backend);
  weights->embedding = backend->Pack(std::array{tensors.embedding});
  weights->final_norm = LoadGain(tensors.norm);
  if (!config.tied_embeddings) weights->lm_head = backend->Pack(std::array{tensors.lm_head});
  for (const LayerTensors& layer : tensors.layers) {
    weights->layers.push_back(PackLayer(layer, *backend));
  }
  return std::shared_ptr<const ModelWeights>(std::move(weights));
}

std::shared_ptr<const ModelWeights> SyntheticWeights(const ModelConfig& config, std::uint64_t seed,
                                                     Backend* backend) {
  // Inputs of a product have unit variance, so 1 / sqrt(width) keeps it; what a block adds to the
  // residual stream shrinks with depth, yet outweighs the token's own embedding, so that the model
  // does not just repeat its input. Logits get a standard deviation of 4: over 49,152 tokens their
  // softmax has 4 to 5 nats, a little more than text, where equal logits would have 11.
  const double spread = 4;
  const double from_hidden = 1 / std::sqrt(double(config.hidden));
  const double residual = 4 / std::sqrt(2.0 * config.layers);
  const std::int64_t query_width = std::int64_t{config.heads} * config.head_dim;
  const HeadShape heads{config.heads, config.kv_heads, config.head_dim};

  SyntheticSource source(seed);
  const auto pack = [&](std::int64_t outputs, std::int64_t inputs, double deviation) {
    return backend->Pack(std::array{source.Matrix(outputs, inputs, deviation)});
  };
  auto weights = std::make_shared<LlamaWeights>(config, *backend);
  weights->embedding = pack(config.vocabulary, config.hidden, spread * from_hidden);
  if (!config.tied_embeddings) {
    weights->lm_head = pack(config.vocabulary, config.hidden, spread * from_hidden);
  }
  weights->final_norm = Ones(config.hidden);
  for (int i = 0; i < config.layers; ++i) {
    LlamaLayerWeights layer;
    layer.attention_norm = Ones(config.hidden);
    layer.mlp_norm = Ones(config.hidden);
    layer.qkv = pack(heads.row_width(), config.hidden, from_hidden);
    layer.output = pack(config.hidden, query_width, residual / std::sqrt(double(query_width)));
    layer.gate_up = pack(2 * std::int64_t{config.intermediate}, config.hidden, from_hidden);
    layer.down =
        pack(config.hidden, config.intermediate, residual / std::sqrt(double(config.intermediate)));
    weights->layers.push_back(std::move(layer));
  }
  return weights;
}

}  // namespace foretoken
