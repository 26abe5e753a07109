#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "model/llama/llama_weights.h"
#include "tensor/half.h"
#include "weights/rotated_rows.h"

namespace foretoken {
namespace {

using Shape = std::vector<std::int64_t>;

std::string FormatShape(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// A tensor by its name, one of those that make a matrix, and its share of the outputs.
struct Part {
  std::string name;
  std::int64_t outputs;
  bool rotated = false;  // Its outputs are heads that are rotated.
};

// The weights of a checkpoint. Without a backend they are found and checked, and nothing is packed.
class CheckpointSource {
 public:
  CheckpointSource(const Checkpoint& checkpoint, const ModelConfig& config, Backend* backend)
      : checkpoint_(checkpoint), head_dim_(config.head_dim), backend_(backend) {}

  // Of all that was found.
  std::size_t bytes() const { return bytes_; }
  // From now on `progress` is told how many of `all` bytes are packed.
  void ReportTo(const LoadProgress& progress, std::size_t all) {
    progress_ = progress;
    all_ = all;
    Report();
  }

  // The gain of a norm.
  Result<Buffer> Gain(const std::string& name, std::int64_t width) {
    FT_RETURN_IF_ERROR(Find(name, {width}));
    if (backend_ == nullptr) return Buffer();
    Buffer gain(static_cast<std::size_t>(width) * sizeof(float));
    LoadElements(checkpoint_.Read(name).view, 0, width, gain.as<float>());
    checkpoint_.Release(name);
    Report();
    return gain;
  }

  // The matrix of tensors [outputs, inputs], one below the other.
  Result<Matrix> Stack(const std::vector<Part>& parts, std::int64_t inputs, double /*gain*/) {
    for (const Part& part : parts) {
      FT_RETURN_IF_ERROR(Find(part.name, {part.outputs, inputs}));
    }
    if (backend_ == nullptr) return Matrix();
    std::vector<TensorBytes> tensors;
    std::vector<TensorView> views;
    for (const Part& part : parts) {
      TensorBytes& tensor = tensors.emplace_back(checkpoint_.Read(part.name));
      if (part.rotated && checkpoint_.alternating_heads) {
        tensor.made = HalvesApart(tensor.view, head_dim_);
        tensor.view.data = tensor.made.data();
      }
      views.push_back(tensor.view);
    }
    Matrix matrix = backend_->Pack(views);
    for (const Part& part : parts) checkpoint_.Release(part.name);
    Report();
    return matrix;
  }

  // Biases mean a model that would be computed wrongly, whatever its config says.
  Status RefuseBiases() const {
    for (const auto& [name, view] : checkpoint_.tensors) {
      if (name.starts_with("model.layers.") && name.ends_with("_proj.bias")) {
        return InvalidInput(fmt::format("{}: tensor {} is a bias, which is not supported",
                                        checkpoint_.path.string(), checkpoint_.NameInFile(name)));
      }
    }
    return {};
  }

 private:
  void Report() const {
    if (progress_) progress_(bytes_, all_);
  }

  // Refuses a tensor that is missing or has another shape.
  Status Find(const std::string& name, const Shape& shape) {
    const std::string where = checkpoint_.path.string();
    const TensorView* view = checkpoint_.Find(name);
    if (view == nullptr) {
      return InvalidInput(fmt::format("{}: lacks tensor {} of shape {}", where,
                                      checkpoint_.NameInFile(name), FormatShape(shape)));
    }
    if (view->shape != shape) {
      return InvalidInput(fmt::format("{}: tensor {} must have shape {} by {} but has {}", where,
                                      checkpoint_.NameInFile(name), FormatShape(shape),
                                      checkpoint_.gguf ? "the metadata" : "config.json",
                                      FormatShape(view->shape)));
    }
    bytes_ += view->bytes();
    return {};
  }

  const Checkpoint& checkpoint_;
  std::int64_t head_dim_;
  Backend* backend_;
  std::size_t bytes_ = 0;
  LoadProgress progress_;
  std::size_t all_ = 0;
};

// Random BF16 weights. Each value is one of 256 quantiles of a normal distribution, picked by one
// byte of an xorshift generator: eight values for a few instructions.
class SyntheticSource {
 public:
  SyntheticSource(std::uint64_t seed, Backend* backend)
      : state_(seed * 2 + 0x9E3779B97F4A7C15U), backend_(backend) {}

  Result<Buffer> Gain(const std::string& /*name*/, std::int64_t width) {
    Buffer ones(static_cast<std::size_t>(width) * sizeof(float));
    std::fill_n(ones.as<float>(), width, 1.0F);
    return ones;
  }

  // A product with it makes standard deviation `gain` of inputs of unit variance.
  Result<Matrix> Stack(const std::vector<Part>& parts, std::int64_t inputs, double gain) {
    const double deviation = gain / std::sqrt(static_cast<double>(inputs));
    std::array<BFloat16, 256> quantiles;
    for (int i = 0; i < 256; ++i) {
      quantiles[i] = FloatToBFloat16(static_cast<float>(deviation * Quantile((i + 0.5) / 256)));
    }
    std::int64_t outputs = 0;
    for (const Part& part : parts) outputs += part.outputs;
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
    return backend_->Pack(
        std::array{TensorView{WeightFormat::kBF16, {outputs, inputs}, scratch_.data()}});
  }

 private:
  // A logistic curve near enough to the normal quantile function, of unit variance.
  static double Quantile(double p) { return std::log(p / (1 - p)) * 0.5513; }

  std::uint64_t state_;
  Backend* backend_;
  Buffer scratch_;
};

// All weights of a model, taken from `source` in this order.
template <typename Source>
Result<LlamaTensors> Collect(const ModelConfig& config, Source& source) {
  // Of random weights: what a block adds to the residual stream shrinks with depth, yet outweighs
  // the token's own embedding, so that the model does not just repeat its input. Logits get a
  // standard deviation of 4: over 49,152 tokens their softmax has 4 to 5 nats, a little more than
  // text, where equal logits would have 11.
  const double spread = 4;
  const double residual = 4 / std::sqrt(2.0 * config.layers);
  const std::int64_t hidden = config.hidden;
  const std::int64_t intermediate = config.intermediate;
  const std::int64_t query_width = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t kv_width = std::int64_t{config.kv_heads} * config.head_dim;
  LlamaTensors all;
  const auto table = [&](const char* name) {
    return source.Stack({{name, config.vocabulary}}, hidden, spread);
  };
  FT_ASSIGN_OR_RETURN(all.embedding, table("model.embed_tokens.weight"));
  FT_ASSIGN_OR_RETURN(all.final_norm, source.Gain("model.norm.weight", hidden));
  if (!config.tied_embeddings) {
    FT_ASSIGN_OR_RETURN(all.lm_head, table("lm_head.weight"));
  }
  for (int i = 0; i < config.layers; ++i) {
    LlamaLayerWeights& layer = all.layers.emplace_back();
    const auto gain = [&](const char* name) {
      return source.Gain(fmt::format("model.layers.{}.{}.weight", i, name), hidden);
    };
    const auto part = [&](const char* name, std::int64_t outputs, bool rotated = false) {
      return Part{fmt::format("model.layers.{}.{}_proj.weight", i, name), outputs, rotated};
    };
    FT_ASSIGN_OR_RETURN(layer.attention_norm, gain("input_layernorm"));
    FT_ASSIGN_OR_RETURN(layer.mlp_norm, gain("post_attention_layernorm"));
    FT_ASSIGN_OR_RETURN(layer.qkv, source.Stack({part("self_attn.q", query_width, /*rotated=*/true),
                                                 part("self_attn.k", kv_width, /*rotated=*/true),
                                                 part("self_attn.v", kv_width)},
                                                hidden, 1));
    FT_ASSIGN_OR_RETURN(layer.output,
                        source.Stack({part("self_attn.o", hidden)}, query_width, residual));
    FT_ASSIGN_OR_RETURN(
        layer.gate_up,
        source.Stack({part("mlp.gate", intermediate), part("mlp.up", intermediate)}, hidden, 1));
    FT_ASSIGN_OR_RETURN(layer.down,
                        source.Stack({part("mlp.down", hidden)}, intermediate, residual));
  }
  return all;
}

// Checks everything and packs nothing; returns the bytes that there are to pack.
Result<std::size_t> CheckAll(const Checkpoint& checkpoint, const ModelConfig& config) {
  CheckpointSource source(checkpoint, config, nullptr);
  FT_RETURN_IF_ERROR(source.RefuseBiases());
  FT_RETURN_IF_ERROR(Collect(config, source));
  return source.bytes();
}

}  // namespace

Status CheckWeights(const Checkpoint& checkpoint, const ModelConfig& config) {
  FT_RETURN_IF_ERROR(CheckAll(checkpoint, config));
  return {};
}

Result<std::shared_ptr<const ModelWeights>> LoadWeights(const Checkpoint& checkpoint,
                                                        const ModelConfig& config, Backend* backend,
                                                        const LoadProgress& progress) {
  // Everything is checked before anything is packed, so that a bad model fails at once.
  FT_ASSIGN_OR_RETURN(const std::size_t all, CheckAll(checkpoint, config));
  CheckpointSource source(checkpoint, config, backend);
  source.ReportTo(progress, all);
  FT_ASSIGN_OR_RETURN(LlamaTensors tensors, Collect(config, source));
  return std::shared_ptr<const ModelWeights>(
      std::make_shared<LlamaWeights>(config, *backend, std::move(tensors)));
}

std::shared_ptr<const ModelWeights> SyntheticWeights(const ModelConfig& config, std::uint64_t seed,
                                                     Backend* backend) {
  SyntheticSource source(seed, backend);
  return std::make_shared<LlamaWeights>(config, *backend, Collect(config, source).value());
}

}  // namespace foretoken
