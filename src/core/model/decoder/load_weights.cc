#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/numbers/portable_math.h"
#include "core/model/config/sublayers.h"
#include "core/model/decoder/checkpoint_source.h"
#include "core/model/decoder/decoder_weights.h"
#include "core/model/decoder/synthetic_source.h"

namespace foretoken {
namespace {

// The spread of logits with random weights. What a block then adds to the residual stream shrinks
// with depth, yet outweighs the token's own embedding, so that the model does not just repeat its
// input. Logits get a standard deviation of 4: over 49,152 tokens their softmax has 4 to 5 nats, a
// little more than text, where equal logits would have 11.
constexpr double kSpread = 4;

// Takes the weights of a model from `source`, in one order.
template <typename Source>
class Collector {
 public:
  Collector(const ModelConfig& config, Source& source)
      : config_(config), source_(source), residual_(4 / std::sqrt(2.0 * config.layer_count())) {}

  Result<DecoderTensors> All() {
    DecoderTensors all;
    const bool heads = config_.feature.has_heads();
    if (heads) FT_RETURN_IF_ERROR(Heads(&all.heads));
    if (heads && !config_.feature.sequential()) return all;
    FT_ASSIGN_OR_RETURN(all.embedding, Embedding());
    if (config_.layer_input > 0) FT_RETURN_IF_ERROR(LayerInputs(&all.layer_inputs));
    if (config_.feature.there() && !config_.feature.enters_stream()) {
      FT_RETURN_IF_ERROR(Feature(&all.feature));
    }
    if (config_.markov.there()) FT_RETURN_IF_ERROR(Markov(&all.markov));
    if (config_.feature.output_norm) {
      FT_ASSIGN_OR_RETURN(all.output_norm, Norm("output_norm"));
    }
    if (!config_.tied_embeddings && !heads) {
      FT_ASSIGN_OR_RETURN(all.head, Table("head"));
    }
    for (int i = 0; i < config_.layer_count(); ++i) {
      LayerWeights& layer = all.layers.emplace_back();
      prefix_ = fmt::format("layers.{}.", i);
      first_of_drafter_ = config_.feature.in_rows() && i == 0;
      const LayerSpec& spec = config_.layers[i];
      if (!HasMixer(spec) && !HasMlp(spec)) continue;
      FT_RETURN_IF_ERROR(Norms(spec, &layer));
      if (HasMixer(spec)) FT_RETURN_IF_ERROR(Mixer(spec, &layer));
      if (HasMlp(spec)) FT_RETURN_IF_ERROR(Mlp(spec.mlp, &layer));
      FT_RETURN_IF_ERROR(Behind(&layer));
    }
    return all;
  }

 private:
  Result<Matrix> Table(const std::string& name) {
    return source_.Stack({{name, config_.vocabulary}}, config_.hidden, kSpread);
  }
  Result<EmbeddingTable> Embedding() {
    if (!config_.tied_embeddings) {
      return source_.Rows("embedding", config_.embeddings(), config_.hidden, kSpread);
    }
    EmbeddingTable table;
    FT_ASSIGN_OR_RETURN(table.packed, Table("embedding"));
    return table;
  }
  Status Heads(std::vector<DraftHead>* heads) {
    const std::int64_t width = config_.hidden;
    const bool sequential = config_.feature.sequential();
    for (int i = 0; i < config_.feature.heads; ++i) {
      DraftHead& head = heads->emplace_back();
      const auto block = [&](int number, const char* part, std::int64_t inputs,
                             LinearWeights* weights) {
        return Linear({{fmt::format("heads.{}.{}.{}", i, number, part), width}}, inputs, 1, true,
                      weights);
      };
      if (sequential) {
        FT_RETURN_IF_ERROR(block(0, "linear", (i + 2) * width, &head.entry));
        FT_RETURN_IF_ERROR(block(0, "residual", (i + 2) * width, &head.entry_residual));
      }
      for (int j = sequential ? 1 : 0; j < config_.feature.head_blocks; ++j) {
        FT_RETURN_IF_ERROR(block(j, "linear", width, &head.blocks.emplace_back()));
      }
      FT_RETURN_IF_ERROR(Linear({{fmt::format("heads.{}.logits", i), config_.vocabulary}}, width,
                                kSpread, sequential, &head.logits));
    }
    return {};
  }
  Status Feature(FeatureWeights* feature) {
    const FeatureSpec& spec = config_.feature;
    const std::int64_t width = config_.hidden;
    if (spec.tap_norm == FeatureSpec::TapNorm::kAll) {
      FT_ASSIGN_OR_RETURN(feature->tap_norms.emplace_back(),
                          source_.Norm("feature.tap_norm", spec.tap_width(), false));
    }
    const bool each = spec.tap_norm == FeatureSpec::TapNorm::kEachPoint;
    for (std::size_t i = 0; each && i < spec.points.size(); ++i) {
      FT_ASSIGN_OR_RETURN(feature->tap_norms.emplace_back(),
                          source_.Norm(fmt::format("feature.tap_norm.{}", i), spec.tapped, false));
    }
    if (spec.masked) {
      FT_ASSIGN_OR_RETURN(feature->mask, source_.Vector("feature.mask.weight", spec.tap_width()));
    }
    if (spec.reduced) {
      FT_RETURN_IF_ERROR(
          Linear({{"feature.reduction", width}}, spec.tap_width(), 1, false, &feature->reduction));
    }
    const bool attended = spec.join == FeatureSpec::Join::kAttended;
    const bool context = spec.join == FeatureSpec::Join::kContext;
    if (spec.normed || attended) {
      FT_ASSIGN_OR_RETURN(feature->token_norm, Norm("feature.token_norm"));
    }
    if (spec.normed || attended || context) {
      FT_ASSIGN_OR_RETURN(feature->feature_norm, Norm("feature.norm"));
    }
    if (attended || context) return {};
    return Linear({{"feature.join", width}}, 2 * width, 1, spec.bias, &feature->join);
  }
  Status Markov(MarkovWeights* markov) {
    const MarkovSpec& spec = config_.markov;
    const std::int64_t rank = spec.rank;
    if (rank > 0) {
      FT_ASSIGN_OR_RETURN(markov->tokens,
                          source_.Rows("markov.tokens", config_.embeddings(), rank, 1));
      FT_ASSIGN_OR_RETURN(markov->output,
                          source_.Stack({{"markov.output", config_.vocabulary}}, rank, 1));
    }
    if (spec.kind == MarkovSpec::Kind::kGated) {
      FT_RETURN_IF_ERROR(
          Linear({{"markov.gate", rank}}, config_.hidden + rank, 1, true, &markov->gate));
    } else if (spec.kind == MarkovSpec::Kind::kRecurrent) {
      FT_RETURN_IF_ERROR(
          Linear({{"markov.cell", 3 * rank}}, config_.hidden + 2 * rank, 1, true, &markov->cell));
    }
    if (!spec.confidence) return {};
    return Linear({{"markov.confidence", 1}}, spec.confidence_width(config_.hidden), 1, true,
                  &markov->confidence);
  }
  Status LayerInputs(LayerInputWeights* inputs) {
    const std::int64_t width = config_.layer_input;
    const std::int64_t all = width * config_.layer_count();
    FT_ASSIGN_OR_RETURN(inputs->table,
                        source_.Rows("layer_inputs", config_.embeddings(), all, kSpread));
    FT_RETURN_IF_ERROR(
        Linear({{"layer_inputs.projection", all}}, config_.hidden, 1, false, &inputs->projection));
    FT_ASSIGN_OR_RETURN(inputs->norm, source_.Norm("layer_inputs.norm", width, false));
    return {};
  }

  Result<NormWeights> Norm(const std::string& name) {
    return source_.Norm(name, config_.hidden, config_.norm.bias);
  }

  Status Norms(const LayerSpec& spec, LayerWeights* layer) {
    const BlockSpec& block = config_.block;
    if (block.norm_before) {
      const bool enters = HasMixer(spec) || block.shared_norm;
      if (enters && (!first_of_drafter_ || config_.feature.first_norm)) {
        FT_ASSIGN_OR_RETURN(layer->attention_norm, Norm(prefix_ + "attention_norm"));
      }
      if (HasMlp(spec) && !block.shared_norm) {
        FT_ASSIGN_OR_RETURN(layer->mlp_norm, Norm(prefix_ + "mlp_norm"));
      }
    }
    if (!block.norm_after) return {};
    if (HasMixer(spec)) {
      FT_ASSIGN_OR_RETURN(layer->attention_post_norm, Norm(prefix_ + "attention_post_norm"));
    }
    if (!HasMlp(spec)) return {};
    FT_ASSIGN_OR_RETURN(layer->mlp_post_norm, Norm(prefix_ + "mlp_post_norm"));
    return {};
  }

  Status Mixer(const LayerSpec& spec, LayerWeights* layer) {
    if (spec.is_recurrent()) return Delta(spec.delta, layer);
    return spec.attention.is_latent() ? LatentAttention(spec.attention, layer)
                                      : Attention(spec.attention, layer);
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
    const RotatedHeads heads{spec.head_dim, RotatedDims(config_, spec)};
    std::vector<Part> parts = {{prefix_ + "q", q, q}, {prefix_ + "k", kv, kv}, {prefix_ + "v", kv}};
    if (spec.keys_as_values) parts.back().name = prefix_ + "k";
    if (spec.kv_from >= 0) {
      parts.resize(1);
      for (const char* name : {"k", "v", "k_norm"}) source_.Ignore(prefix_ + name + ".weight");
    }
    if (source_.Has(prefix_ + "qkv.weight")) parts = {{prefix_ + "qkv", q + 2 * kv, q + kv}};
    if (spec.output_gate) {
      // Each head's queries and then its gates are rows of one tensor.
      const std::vector<std::int64_t> of_head(2, spec.head_dim);
      parts = PartsOf(prefix_ + "q", spec.heads, of_head, 0);
      parts.insert(parts.end(), {{prefix_ + "k", kv}, {prefix_ + "v", kv}});
      FT_RETURN_IF_ERROR(Linear(PartsOf(prefix_ + "q", spec.heads, of_head, 1), config_.hidden, 1,
                                spec.qkv_bias, &layer->output_gate));
    }
    FT_ASSIGN_OR_RETURN(layer->qkv.matrix, source_.Stack(parts, AttentionInputs(), 1, heads));
    if (spec.qkv_bias) {
      FT_ASSIGN_OR_RETURN(layer->qkv.bias, source_.Biases(parts, heads));
    }
    if (spec.qk_norm != AttentionSpec::QkNorm::kNone) {
      FT_ASSIGN_OR_RETURN(layer->q_norm,
                          source_.HeadNorm(GainsOf("q_norm", spec, spec.heads), heads));
      if (spec.kv_from < 0) {
        FT_ASSIGN_OR_RETURN(layer->k_norm,
                            source_.HeadNorm(GainsOf("k_norm", spec, spec.kv_heads), heads));
      }
    }
    if (spec.value_norm) layer->v_norm.gain = Ones(spec.head_dim);
    if (spec.sinks) {
      FT_ASSIGN_OR_RETURN(layer->sinks, source_.Vector(prefix_ + "sinks.weight", spec.heads));
    }
    return Linear({{prefix_ + "o", config_.hidden}}, q, residual_, spec.output_bias,
                  &layer->output);
  }

  // What queries, keys and values are made of.
  std::int64_t AttentionInputs() const {
    const bool beside = config_.feature.join == FeatureSpec::Join::kAttended;
    return std::int64_t{config_.hidden} * (first_of_drafter_ && beside ? 2 : 1);
  }

  static Buffer Ones(int count) {
    Buffer ones(count * sizeof(float));
    std::fill_n(ones.as<float>(), count, 1.0F);
    return ones;
  }

  Status LatentAttention(const AttentionSpec& spec, LayerWeights* layer) {
    const LatentSpec& latent = spec.latent;
    LatentWeights* const weights = &layer->latent;
    const std::int64_t query = latent.nope_dim + spec.head_dim - latent.kv_rank;
    const bool ranked = latent.query_rank > 0;
    if (ranked) {
      FT_RETURN_IF_ERROR(Linear({{prefix_ + "q_a", latent.query_rank}}, config_.hidden, 1, false,
                                &weights->query_down));
      FT_ASSIGN_OR_RETURN(weights->query_norm,
                          source_.Norm(prefix_ + "q_a_norm", latent.query_rank, false));
    }
    FT_RETURN_IF_ERROR(Linear({{prefix_ + (ranked ? "q_b" : "q"), spec.heads * query}},
                              ranked ? latent.query_rank : config_.hidden, 1, false,
                              &weights->query));
    FT_RETURN_IF_ERROR(
        Linear({{prefix_ + "kv_a", spec.head_dim}}, config_.hidden, 1, false, &weights->kv_down));
    FT_ASSIGN_OR_RETURN(weights->kv_norm,
                        source_.Norm(prefix_ + "kv_a_norm", latent.kv_rank, false));
    FT_ASSIGN_OR_RETURN(weights->key_up, source_.Matrices({{prefix_ + "k_b", latent.kv_rank}},
                                                          spec.heads, latent.nope_dim, 1));
    FT_ASSIGN_OR_RETURN(weights->value_up, source_.Matrices({{prefix_ + "v_b", latent.value_dim}},
                                                            spec.heads, latent.kv_rank, 1));
    return Linear({{prefix_ + "o", config_.hidden}}, spec.output_width(), residual_,
                  spec.output_bias, &layer->output);
  }

  // What stands behind a layer's MLP.
  Status Behind(LayerWeights* layer) {
    if (config_.layer_input > 0) {
      FT_RETURN_IF_ERROR(Linear({{prefix_ + "input_gate", config_.layer_input}}, config_.hidden, 1,
                                false, &layer->input_gate));
      FT_RETURN_IF_ERROR(Linear({{prefix_ + "input_projection", config_.hidden}},
                                config_.layer_input, residual_, false, &layer->input_projection));
      FT_ASSIGN_OR_RETURN(layer->input_post_norm, Norm(prefix_ + "input_post_norm"));
    }
    if (!config_.block.own_scale) return {};
    FT_ASSIGN_OR_RETURN(NormWeights scale, source_.Norm(prefix_ + "scale", 1, false));
    layer->scale = std::move(scale.gain);
    return {};
  }

  // The parts of one kind in a tensor that has some rows of each of several kinds for each of
  // `heads`.
  static std::vector<Part> PartsOf(const std::string& name, int heads,
                                   const std::vector<std::int64_t>& rows, std::size_t kind) {
    const std::int64_t stride = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    std::int64_t first = std::accumulate(rows.begin(), rows.begin() + kind, std::int64_t{0});
    std::vector<Part> parts;
    for (int head = 0; head < heads; ++head, first += stride) {
      parts.push_back({.name = name, .outputs = rows[kind], .first = first, .all = heads * stride});
    }
    return parts;
  }

  // Rows of inputs as DeltaShape describes them, of tensors by themselves or by key heads.
  std::vector<Part> DeltaInputs(const DeltaShape& shape, const std::string& at) const {
    const std::int64_t heads = shape.value_heads / shape.key_heads;  // Value heads of a key head.
    const std::int64_t values = heads * shape.value_dim;
    std::vector<Part> parts = {{at + "qkv", shape.conv_width()}, {at + "z", shape.value_width()}};
    if (source_.Has(at + "qkvz.weight")) {
      parts.clear();
      for (const std::size_t kind : {0, 1, 2, 3}) {
        const auto of_kind = PartsOf(at + "qkvz", shape.key_heads,
                                     {shape.key_dim, shape.key_dim, values, values}, kind);
        parts.insert(parts.end(), of_kind.begin(), of_kind.end());
      }
    }
    if (!source_.Has(at + "ba.weight")) {
      parts.insert(parts.end(), {{at + "b", shape.value_heads}, {at + "a", shape.value_heads}});
      return parts;
    }
    for (const std::size_t kind : {0, 1}) {
      const auto of_kind = PartsOf(at + "ba", shape.key_heads, {heads, heads}, kind);
      parts.insert(parts.end(), of_kind.begin(), of_kind.end());
    }
    return parts;
  }

  Status Delta(const DeltaShape& shape, LayerWeights* layer) {
    const std::string at = prefix_ + "delta.";
    DeltaLayerWeights& delta = layer->delta;
    FT_RETURN_IF_ERROR(Linear(DeltaInputs(shape, at), config_.hidden, 1, false, &delta.inputs));
    FT_ASSIGN_OR_RETURN(delta.taps,
                        source_.Taps(at + "taps.weight", shape.conv_width(), shape.taps));
    const bool less = source_.Has(at + "minus_rates");
    FT_ASSIGN_OR_RETURN(
        delta.rates, source_.Vector(at + (less ? "minus_rates" : "log_rates"), shape.value_heads));
    float* const rates = delta.rates.template as<float>();
    for (std::size_t i = 0; i < delta.rates.bytes() / sizeof(float); ++i) {
      rates[i] = less ? -rates[i] : static_cast<float>(PortableExp(double{rates[i]}));
    }
    FT_ASSIGN_OR_RETURN(delta.rate_bias, source_.Vector(at + "rate_bias", shape.value_heads));
    FT_ASSIGN_OR_RETURN(delta.norm, source_.PlainNorm(at + "norm", shape.value_dim));
    return Linear({{at + "o", config_.hidden}}, shape.value_width(), residual_, false,
                  &layer->output);
  }

  Status Mlp(const MlpSpec& spec, LayerWeights* layer) {
    if (spec.has_experts()) return Experts(spec, layer);
    return DenseMlp("", spec.intermediate, spec.bias, &layer->gate_up, &layer->down);
  }

  // Takes the matrices of an MLP whose tensors' names begin with `stem`.
  Status DenseMlp(const char* stem, std::int64_t width, bool biased, LinearWeights* gate_up,
                  LinearWeights* down) {
    const std::string at = prefix_ + stem;
    FT_RETURN_IF_ERROR(Linear(GateUp(at, width), config_.hidden, 1, biased, gate_up));
    return Linear({{at + "down", config_.hidden}}, width, residual_, biased, down);
  }

  // The tensors of gates and of what they are multiplied with, or the one of both.
  std::vector<Part> GateUp(const std::string& at, std::int64_t width) const {
    if (source_.Has(at + "gate_up.weight")) return {{at + "gate_up", 2 * width}};
    return {{at + "gate", width}, {at + "up", width}};
  }

  Status Experts(const MlpSpec& spec, LayerWeights* layer) {
    const int count = spec.routing.experts;
    const std::int64_t width = spec.intermediate;
    const std::string at = prefix_ + "experts.";
    FT_RETURN_IF_ERROR(
        Linear({{prefix_ + "router", count}}, config_.hidden, 1, spec.router_bias, &layer->router));
    if (spec.choice_bias) {
      FT_ASSIGN_OR_RETURN(layer->choice_bias, source_.Vector(prefix_ + "choice_bias", count));
    }
    const std::vector<Part> parts = GateUp(at, width);
    const std::vector<Part> down = {{at + "down", config_.hidden}};
    FT_ASSIGN_OR_RETURN(layer->gate_up.matrix, source_.Experts(parts, count, config_.hidden, 1));
    FT_ASSIGN_OR_RETURN(layer->down.matrix, source_.Experts(down, count, width, residual_));
    if (spec.bias) {
      FT_ASSIGN_OR_RETURN(layer->gate_up.bias, source_.BiasesOfExperts(parts, count));
      FT_ASSIGN_OR_RETURN(layer->down.bias, source_.BiasesOfExperts(down, count));
    }
    if (spec.apart) FT_RETURN_IF_ERROR(ApartFromShared(count, layer));
    return SharedExpert(spec, layer);
  }

  Status ApartFromShared(int count, LayerWeights* layer) {
    FT_ASSIGN_OR_RETURN(layer->router_norm, Norm(prefix_ + "router_norm"));
    // Files have the gain without the root of the width that it is divided by.
    const float root = std::sqrt(static_cast<float>(config_.hidden));
    Buffer& gain = layer->router_norm.gain;
    for (std::size_t i = 0; i < gain.bytes() / sizeof(float); ++i) gain.as<float>()[i] /= root;
    FT_ASSIGN_OR_RETURN(layer->experts_norm, Norm(prefix_ + "experts_norm"));
    FT_ASSIGN_OR_RETURN(layer->experts_post_norm, Norm(prefix_ + "experts_post_norm"));
    FT_ASSIGN_OR_RETURN(layer->shared_post_norm, Norm(prefix_ + "shared_post_norm"));
    FT_ASSIGN_OR_RETURN(NormWeights factors,
                        source_.Norm(prefix_ + "expert_factors", count, false));
    layer->expert_factors = std::move(factors.gain);
    return {};
  }

  Status SharedExpert(const MlpSpec& spec, LayerWeights* layer) {
    if (!spec.has_shared()) return {};
    FT_RETURN_IF_ERROR(DenseMlp(spec.apart ? "" : "shared.", spec.shared_intermediate, spec.bias,
                                &layer->shared_gate_up, &layer->shared_down));
    if (!spec.shared_gate) return {};
    return Linear({{prefix_ + "shared_gate", 1}}, config_.hidden, 1, false, &layer->shared_gate);
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
  std::string prefix_;             // The beginning of the names of the layer's tensors.
  bool first_of_drafter_ = false;  // The layer is the first of a model whose rows have features.
};

// Checks everything and packs nothing; returns the bytes that there are to pack.
Result<std::size_t> CheckAll(const Checkpoint& checkpoint, const ModelConfig& config,
                             ExpertsPlace experts) {
  const bool has_experts = std::ranges::any_of(
      config.layers, [](const LayerSpec& layer) { return layer.mlp.has_experts(); });
  if (experts == ExpertsPlace::kFile && !has_experts) {
    return Invalid("{}: the model has no experts that could stay in its file",
                   checkpoint.path.string());
  }
  CheckpointSource source(checkpoint, experts, nullptr);
  FT_RETURN_IF_ERROR(Collector(config, source).All());
  // What a model leaves out of another it has no use for.
  if (IsWhole(config)) FT_RETURN_IF_ERROR(source.RefuseUnused());
  return source.bytes();
}

}  // namespace

Status CheckWeights(const Checkpoint& checkpoint, const ModelConfig& config, ExpertsPlace experts) {
  FT_RETURN_IF_ERROR(CheckAll(checkpoint, config, experts));
  return {};
}

Result<std::shared_ptr<const ModelWeights>> LoadWeights(const Checkpoint& checkpoint,
                                                        const ModelConfig& config, Backend* backend,
                                                        const LoadProgress& progress,
                                                        ExpertsPlace experts) {
  // Everything is checked before anything is packed, so that a bad model fails at once.
  FT_ASSIGN_OR_RETURN(const std::size_t all, CheckAll(checkpoint, config, experts));
  CheckpointSource source(checkpoint, experts, backend);
  source.ReportTo(progress, all);
  FT_ASSIGN_OR_RETURN(DecoderTensors tensors, Collector(config, source).All());
  if (experts == ExpertsPlace::kFile) tensors.files = checkpoint.files;
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
