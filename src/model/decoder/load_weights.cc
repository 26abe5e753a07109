#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "model/decoder/decoder_weights.h"
#include "tensor/half.h"
#include "weights/rotated_rows.h"

namespace foretoken {
namespace {

using Shape = std::vector<std::int64_t>;

std::string FormatShape(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// A tensor by its name without ".weight", one of those that make a matrix, and its outputs.
struct Part {
  std::string name;
  std::int64_t outputs;
  std::int64_t rotated = 0;  // Its leading outputs that are heads which are rotated.
  std::int64_t heads = 0;    // Of numbers that are stored as [heads, width of a head].
};

// How heads lie in the outputs of a layer's queries and keys.
struct RotatedHeads {
  std::int64_t head_dim = 0;
  std::int64_t dims = 0;
};

// The weights of a checkpoint. Without a backend they are found and checked, and nothing is packed.
class CheckpointSource {
 public:
  CheckpointSource(const Checkpoint& checkpoint, Backend* backend)
      : checkpoint_(checkpoint), backend_(backend) {}

  // Of all that was found.
  std::size_t bytes() const { return bytes_; }
  // From now on `progress` is told how many of `all` bytes are packed.
  void ReportTo(const LoadProgress& progress, std::size_t all) {
    progress_ = progress;
    all_ = all;
    Report();
  }

  bool Has(const std::string& name) const { return checkpoint_.Find(name) != nullptr; }

  // Numbers by a whole name, more.
  Result<Buffer> Vector(const std::string& name, std::int64_t width, float more = 0) {
    FT_RETURN_IF_ERROR(Find(name, {width}));
    if (backend_ == nullptr) return Buffer();
    Buffer numbers(static_cast<std::size_t>(width) * sizeof(float));
    LoadElements(checkpoint_.Read(name).view, 0, width, numbers.as<float>());
    for (std::int64_t i = 0; more != 0 && i < width; ++i) numbers.as<float>()[i] += more;
    checkpoint_.Release(name);
    Report();
    return numbers;
  }

  Result<NormWeights> Norm(const std::string& name, std::int64_t width, bool biased) {
    NormWeights norm;
    FT_ASSIGN_OR_RETURN(norm.gain,
                        Vector(name + ".weight", width, checkpoint_.gains_less_one ? 1.0F : 0.0F));
    if (biased) {
      FT_ASSIGN_OR_RETURN(norm.bias, Vector(name + ".bias", width));
    }
    return norm;
  }

  // The biases of a matrix's parts, one behind the other.
  Result<Buffer> Biases(const std::vector<Part>& parts, const RotatedHeads& heads) {
    return Numbers(parts, ".bias", heads);
  }

  // The gains of a norm of queries or keys, likewise.
  Result<NormWeights> HeadNorm(const std::vector<Part>& parts, const RotatedHeads& heads) {
    NormWeights norm;
    FT_ASSIGN_OR_RETURN(norm.gain, Numbers(parts, ".weight", heads));
    const std::size_t count = checkpoint_.gains_less_one ? norm.gain.bytes() / sizeof(float) : 0;
    for (std::size_t i = 0; i < count; ++i) norm.gain.as<float>()[i] += 1.0F;
    return norm;
  }

  // The matrix of tensors [outputs, inputs], one below the other.
  Result<Matrix> Stack(const std::vector<Part>& parts, std::int64_t inputs, double /*gain*/,
                       const RotatedHeads& heads = {}) {
    for (const Part& part : parts) {
      FT_RETURN_IF_ERROR(Find(part.name + ".weight", {part.outputs, inputs}));
    }
    if (backend_ == nullptr) return Matrix();
    std::vector<TensorBytes> tensors;
    std::vector<TensorView> views;
    for (const Part& part : parts) {
      views.push_back(tensors.emplace_back(ReadRotated(part.name + ".weight", part, heads)).view);
    }
    Matrix matrix = backend_->Pack(views);
    for (const Part& part : parts) checkpoint_.Release(part.name + ".weight");
    Report();
    return matrix;
  }

  // A tensor of which rows are read as they are stored.
  Result<EmbeddingTable> Rows(const std::string& name, std::int64_t rows, std::int64_t width,
                              double /*gain*/) {
    FT_RETURN_IF_ERROR(Find(name + ".weight", {rows, width}));
    if (backend_ == nullptr) return EmbeddingTable();
    EmbeddingTable table{.stored = checkpoint_.Read(name + ".weight"), .files = checkpoint_.files};
    Report();
    return table;
  }

  // A stack of `count` matrices; of each part there is a tensor [count, outputs, inputs], or one
  // tensor for each of them.
  Result<Matrix> Experts(const std::vector<Part>& parts, int count, std::int64_t inputs,
                         double /*gain*/) {
    for (const Part& part : parts) FT_RETURN_IF_ERROR(FindExperts(part, count, inputs));
    if (backend_ == nullptr) return Matrix();
    std::vector<TensorBytes> stacked(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!Numbered(parts[i])) stacked[i] = checkpoint_.Read(parts[i].name + ".weight");
    }
    Matrix stack;
    for (int expert = 0; expert < count; ++expert) {
      std::vector<TensorBytes> own;
      std::vector<TensorView> views;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (Numbered(parts[i])) {
          own.push_back(checkpoint_.Read(NameOfExpert(parts[i], expert)));
          views.push_back(own.back().view);
        } else {
          views.push_back(PartOf(stacked[i].view, expert));
        }
      }
      if (expert == 0) stack = backend_->MakeStack(views, count);
      backend_->PackInto(views, expert, &stack);
      for (const Part& part : parts) {
        if (Numbered(part)) checkpoint_.Release(NameOfExpert(part, expert));
      }
    }
    for (const Part& part : parts) {
      if (!Numbered(part)) checkpoint_.Release(part.name + ".weight");
    }
    Report();
    return stack;
  }

  // [count, outputs of all parts].
  Result<Buffer> BiasesOfExperts(const std::vector<Part>& parts, int count) {
    std::int64_t outputs = 0;
    for (const Part& part : parts) {
      FT_RETURN_IF_ERROR(Find(part.name + ".bias", {count, part.outputs}));
      outputs += part.outputs;
    }
    if (backend_ == nullptr) return Buffer();
    Buffer all(static_cast<std::size_t>(count * outputs) * sizeof(float));
    float* at = all.as<float>();
    for (const Part& part : parts) {
      const TensorBytes tensor = checkpoint_.Read(part.name + ".bias");
      for (int expert = 0; expert < count; ++expert) {
        LoadElements(tensor.view, expert * part.outputs, part.outputs, at + expert * outputs);
      }
      at += part.outputs;
      checkpoint_.Release(part.name + ".bias");
    }
    Report();
    return all;
  }

  // A tensor of a layer that was not asked for means a model that would be computed wrongly,
  // whatever its configuration says.
  Status RefuseUnused() const {
    for (const auto& [name, view] : checkpoint_.tensors) {
      if (!name.starts_with("layers.") || used_.contains(name)) continue;
      return InvalidInput(fmt::format("{}: tensor {} {}is none that {} asks for",
                                      checkpoint_.path.string(), checkpoint_.NameInFile(name),
                                      name.ends_with(".bias") ? "is a bias, and " : "",
                                      Description()));
    }
    return {};
  }

 private:
  void Report() const {
    if (progress_) progress_(bytes_, all_);
  }

  Result<Buffer> Numbers(const std::vector<Part>& parts, const char* ending,
                         const RotatedHeads& heads) {
    std::int64_t outputs = 0;
    for (const Part& part : parts) outputs += part.outputs;
    Buffer all(static_cast<std::size_t>(outputs) * sizeof(float));
    float* to = all.as<float>();
    for (const Part& part : parts) {
      const std::string name = part.name + ending;
      const bool of_heads = part.heads > 0;
      FT_RETURN_IF_ERROR(Find(
          name, of_heads ? Shape{part.heads, part.outputs / part.heads} : Shape{part.outputs}));
      if (backend_ == nullptr) continue;
      const TensorBytes tensor = ReadRotated(name, part, heads);
      LoadElements(tensor.view, 0, part.outputs, to);
      to += part.outputs;
      checkpoint_.Release(name);
      Report();
    }
    return backend_ == nullptr ? Buffer() : std::move(all);
  }

  const char* Description() const { return checkpoint_.gguf ? "the metadata" : "config.json"; }

  // With the leading outputs in the order that rotation takes.
  TensorBytes ReadRotated(const std::string& name, const Part& part, const RotatedHeads& heads) {
    TensorBytes tensor = checkpoint_.Read(name);
    if (part.heads > 0) tensor.view.shape = {part.outputs};
    if (part.rotated == 0 || heads.dims == 0 || !checkpoint_.alternating_heads) return tensor;
    TensorView leading = tensor.view;
    leading.shape[0] = part.rotated;
    std::vector<std::byte> made = HalvesApart(leading, heads.head_dim, heads.dims);
    made.insert(made.end(), tensor.view.data + made.size(), tensor.view.data + tensor.view.bytes());
    tensor.made = std::move(made);
    tensor.view.data = tensor.made.data();
    return tensor;
  }

  // "layers.3.experts.gate" of expert 5 is "layers.3.experts.5.gate.weight".
  static std::string NameOfExpert(const Part& part, int expert) {
    const std::size_t stem = part.name.rfind('.') + 1;
    return fmt::format("{}{}.{}.weight", part.name.substr(0, stem), expert, part.name.substr(stem));
  }
  bool Numbered(const Part& part) const {
    return !Has(part.name + ".weight") && (!checkpoint_.gguf || Has(NameOfExpert(part, 0)));
  }
  static TensorView PartOf(const TensorView& stacked, int index) {
    TensorView part{stacked.format, {stacked.shape[1], stacked.shape[2]}, nullptr};
    part.data = stacked.data + static_cast<std::size_t>(index) * part.bytes();
    return part;
  }

  Status FindExperts(const Part& part, int count, std::int64_t inputs) {
    if (!Numbered(part)) return Find(part.name + ".weight", {count, part.outputs, inputs});
    for (int expert = 0; expert < count; ++expert) {
      const std::string name = NameOfExpert(part, expert);
      FT_RETURN_IF_ERROR(Find(name, {part.outputs, inputs}));
      const WeightFormat format = checkpoint_.Find(name)->format;
      const WeightFormat first = checkpoint_.Find(NameOfExpert(part, 0))->format;
      if (format == first) continue;
      return InvalidInput(
          fmt::format("{}: tensor {} is {}, but that of expert 0 is {}, and those "
                      "of all experts of a layer must be alike",
                      checkpoint_.path.string(), checkpoint_.NameInFile(name), FormatName(format),
                      FormatName(first)));
    }
    return {};
  }

  // Refuses a tensor that is missing or has another shape.
  Status Find(const std::string& name, const Shape& shape) {
    const std::string where = checkpoint_.path.string();
    const TensorView* view = checkpoint_.Find(name);
    used_.insert(name);
    if (view == nullptr) {
      return InvalidInput(fmt::format("{}: lacks tensor {} of shape {}", where,
                                      checkpoint_.NameInFile(name), FormatShape(shape)));
    }
    if (view->shape != shape) {
      return InvalidInput(fmt::format("{}: tensor {} must have shape {} by {} but has {}", where,
                                      checkpoint_.NameInFile(name), FormatShape(shape),
                                      Description(), FormatShape(view->shape)));
    }
    bytes_ += view->bytes();
    return {};
  }

  const Checkpoint& checkpoint_;
  Backend* backend_;
  std::set<std::string, std::less<>> used_;
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

  static bool Has(const std::string& /*name*/) { return false; }

  static Result<Buffer> Vector(const std::string& /*name*/, std::int64_t width) {
    Buffer zeros(static_cast<std::size_t>(width) * sizeof(float));
    std::fill_n(zeros.as<float>(), width, 0.0F);
    return zeros;
  }
  static Result<Buffer> Biases(const std::vector<Part>& parts, const RotatedHeads& /*heads*/) {
    std::int64_t outputs = 0;
    for (const Part& part : parts) outputs += part.outputs;
    return Vector("", outputs);
  }
  static Result<NormWeights> HeadNorm(const std::vector<Part>& parts,
                                      const RotatedHeads& /*heads*/) {
    std::int64_t width = 0;
    for (const Part& part : parts) width += part.outputs;
    return Norm("", width, false);
  }
  static Result<NormWeights> Norm(const std::string& name, std::int64_t width, bool biased) {
    NormWeights norm;
    norm.gain = Buffer(static_cast<std::size_t>(width) * sizeof(float));
    std::fill_n(norm.gain.as<float>(), width, 1.0F);
    if (biased) {
      FT_ASSIGN_OR_RETURN(norm.bias, Vector(name, width));
    }
    return norm;
  }

  // A product with it makes standard deviation `gain` of inputs of unit variance.
  Result<Matrix> Stack(const std::vector<Part>& parts, std::int64_t inputs, double gain,
                       const RotatedHeads& /*heads*/ = {}) {
    return backend_->Pack(std::array{RandomMatrix(parts, inputs, gain)});
  }

  Result<Matrix> Experts(const std::vector<Part>& parts, int count, std::int64_t inputs,
                         double gain) {
    Matrix stack;
    for (int expert = 0; expert < count; ++expert) {
      const std::array view{RandomMatrix(parts, inputs, gain)};
      if (expert == 0) stack = backend_->MakeStack(view, count);
      backend_->PackInto(view, expert, &stack);
    }
    return stack;
  }

  static Result<Buffer> BiasesOfExperts(const std::vector<Part>& parts, int count) {
    std::int64_t outputs = 0;
    for (const Part& part : parts) outputs += part.outputs;
    return Vector("", count * outputs);
  }

  Result<EmbeddingTable> Rows(const char* name, std::int64_t rows, std::int64_t width,
                              double gain) {
    EmbeddingTable table;
    FT_ASSIGN_OR_RETURN(table.packed, Stack({{name, rows}}, width, gain));
    return table;
  }

 private:
  // Valid until the next one.
  TensorView RandomMatrix(const std::vector<Part>& parts, std::int64_t inputs, double gain) {
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
    return {WeightFormat::kBF16, {outputs, inputs}, scratch_.data()};
  }

  // A logistic curve near enough to the normal quantile function, of unit variance.
  static double Quantile(double p) { return std::log(p / (1 - p)) * 0.5513; }

  std::uint64_t state_;
  Backend* backend_;
  Buffer scratch_;
};

// Of random weights: what a block adds to the residual stream shrinks with depth, yet outweighs the
// token's own embedding, so that the model does not just repeat its input. Logits get a standard
// deviation of 4: over 49,152 tokens their softmax has 4 to 5 nats, a little more than text, where
// equal logits would have 11.
constexpr double kSpread = 4;

// Takes the weights of a model from `source`, in one order.
template <typename Source>
class Collector {
 public:
  Collector(const ModelConfig& config, Source& source)
      : config_(config), source_(source), residual_(4 / std::sqrt(2.0 * config.layer_count())) {}

  Result<DecoderTensors> All() {
    DecoderTensors all;
    FT_ASSIGN_OR_RETURN(all.embedding, Embedding());
    FT_ASSIGN_OR_RETURN(all.output_norm, Norm("output_norm"));
    if (!config_.tied_embeddings) {
      FT_ASSIGN_OR_RETURN(all.head, Table("head"));
    }
    for (int i = 0; i < config_.layer_count(); ++i) {
      LayerWeights& layer = all.layers.emplace_back();
      prefix_ = fmt::format("layers.{}.", i);
      const LayerSpec& spec = config_.layers[static_cast<std::size_t>(i)];
      FT_RETURN_IF_ERROR(Norms(&layer));
      FT_RETURN_IF_ERROR(Attention(spec.attention, &layer));
      FT_RETURN_IF_ERROR(Mlp(spec.mlp, &layer));
    }
    return all;
  }

 private:
  Result<Matrix> Table(const char* name) {
    return source_.Stack({{name, config_.vocabulary}}, config_.hidden, kSpread);
  }
  Result<EmbeddingTable> Embedding() {
    if (!config_.tied_embeddings) {
      return source_.Rows("embedding", config_.vocabulary, config_.hidden, kSpread);
    }
    EmbeddingTable table;
    FT_ASSIGN_OR_RETURN(table.packed, Table("embedding"));
    return table;
  }
  Result<NormWeights> Norm(const std::string& name) {
    return source_.Norm(name, config_.hidden, config_.norm.bias);
  }

  Status Norms(LayerWeights* layer) {
    const BlockSpec& block = config_.block;
    if (block.norm_before) {
      FT_ASSIGN_OR_RETURN(layer->attention_norm, Norm(prefix_ + "attention_norm"));
      if (!block.shared_norm) {
        FT_ASSIGN_OR_RETURN(layer->mlp_norm, Norm(prefix_ + "mlp_norm"));
      }
    }
    if (!block.norm_after) return {};
    FT_ASSIGN_OR_RETURN(layer->attention_post_norm, Norm(prefix_ + "attention_post_norm"));
    FT_ASSIGN_OR_RETURN(layer->mlp_post_norm, Norm(prefix_ + "mlp_post_norm"));
    return {};
  }

  // The tensors that are the gains of a norm of queries or keys.
  std::vector<Part> GainsOf(const char* name, const AttentionSpec& spec, int heads) const {
    const std::int64_t width = spec.head_dim;
    const std::int64_t all = heads * width;
    if (spec.qk_norm == AttentionSpec::QkNorm::kEachHead) return {{prefix_ + name, width, width}};
    if (spec.qk_norm == AttentionSpec::QkNorm::kAllHeads) return {{prefix_ + name, all, all}};
    if (!source_.Has(prefix_ + name + ".0.weight")) return {{prefix_ + name, all, all, heads}};
    std::vector<Part> parts;
    for (int head = 0; head < heads; ++head) {
      parts.push_back({fmt::format("{}{}.{}", prefix_, name, head), width, width});
    }
    return parts;
  }

  Status Attention(const AttentionSpec& spec, LayerWeights* layer) {
    const std::int64_t q = spec.query_width();
    const std::int64_t kv = spec.kv_width();
    const RotatedHeads heads{
        spec.head_dim, spec.rope < 0 ? 0 : config_.ropes[static_cast<std::size_t>(spec.rope)].dims};
    std::vector<Part> parts = {{prefix_ + "q", q, q}, {prefix_ + "k", kv, kv}, {prefix_ + "v", kv}};
    if (source_.Has(prefix_ + "qkv.weight")) parts = {{prefix_ + "qkv", q + 2 * kv, q + kv}};
    FT_ASSIGN_OR_RETURN(layer->qkv.matrix, source_.Stack(parts, config_.hidden, 1, heads));
    if (spec.qkv_bias) {
      FT_ASSIGN_OR_RETURN(layer->qkv.bias, source_.Biases(parts, heads));
    }
    if (spec.qk_norm != AttentionSpec::QkNorm::kNone) {
      FT_ASSIGN_OR_RETURN(layer->q_norm,
                          source_.HeadNorm(GainsOf("q_norm", spec, spec.heads), heads));
      FT_ASSIGN_OR_RETURN(layer->k_norm,
                          source_.HeadNorm(GainsOf("k_norm", spec, spec.kv_heads), heads));
    }
    if (spec.sinks) {
      FT_ASSIGN_OR_RETURN(layer->sinks, source_.Vector(prefix_ + "sinks.weight", spec.heads));
    }
    return Linear({{prefix_ + "o", config_.hidden}}, q, residual_, spec.output_bias,
                  &layer->output);
  }

  Status Mlp(const MlpSpec& spec, LayerWeights* layer) {
    if (spec.has_experts()) return Experts(spec, layer);
    const std::int64_t width = spec.intermediate;
    std::vector<Part> parts = {{prefix_ + "gate", width}, {prefix_ + "up", width}};
    if (source_.Has(prefix_ + "gate_up.weight")) parts = {{prefix_ + "gate_up", 2 * width}};
    FT_RETURN_IF_ERROR(Linear(parts, config_.hidden, 1, spec.bias, &layer->gate_up));
    return Linear({{prefix_ + "down", config_.hidden}}, width, residual_, spec.bias, &layer->down);
  }

  Status Experts(const MlpSpec& spec, LayerWeights* layer) {
    const int count = spec.routing.experts;
    const std::int64_t width = spec.intermediate;
    const std::string at = prefix_ + "experts.";
    FT_RETURN_IF_ERROR(
        Linear({{prefix_ + "router", count}}, config_.hidden, 1, spec.router_bias, &layer->router));
    std::vector<Part> parts = {{at + "gate", width}, {at + "up", width}};
    if (source_.Has(at + "gate_up.weight")) parts = {{at + "gate_up", 2 * width}};
    const std::vector<Part> down = {{at + "down", config_.hidden}};
    FT_ASSIGN_OR_RETURN(layer->gate_up.matrix, source_.Experts(parts, count, config_.hidden, 1));
    FT_ASSIGN_OR_RETURN(layer->down.matrix, source_.Experts(down, count, width, residual_));
    if (!spec.bias) return {};
    FT_ASSIGN_OR_RETURN(layer->gate_up.bias, source_.BiasesOfExperts(parts, count));
    FT_ASSIGN_OR_RETURN(layer->down.bias, source_.BiasesOfExperts(down, count));
    return {};
  }

  Status Linear(const std::vector<Part>& parts, std::int64_t inputs, double gain, bool biased,
                LinearWeights* linear) {
    FT_ASSIGN_OR_RETURN(linear->matrix, source_.Stack(parts, inputs, gain));
    if (biased) {
      FT_ASSIGN_OR_RETURN(linear->bias, source_.Biases(parts, {}));
    }
    return {};
  }

  const ModelConfig& config_;
  Source& source_;
  double residual_;
  std::string prefix_;  // Of the layer's names.
};

// Checks everything and packs nothing; returns the bytes that there are to pack.
Result<std::size_t> CheckAll(const Checkpoint& checkpoint, const ModelConfig& config) {
  CheckpointSource source(checkpoint, nullptr);
  FT_RETURN_IF_ERROR(Collector(config, source).All());
  FT_RETURN_IF_ERROR(source.RefuseUnused());
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
  CheckpointSource source(checkpoint, backend);
  source.ReportTo(progress, all);
  FT_ASSIGN_OR_RETURN(DecoderTensors tensors, Collector(config, source).All());
  return std::shared_ptr<const ModelWeights>(
      std::make_shared<DecoderWeights>(config, *backend, std::move(tensors)));
}

std::shared_ptr<const ModelWeights> SyntheticWeights(const ModelConfig& config, std::uint64_t seed,
                                                     Backend* backend) {
  SyntheticSource source(seed, backend);
  return std::make_shared<DecoderWeights>(config, *backend,
                                          Collector(config, source).All().value());
}

}  // namespace foretoken
