#include <fmt/core.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "base/numbers/portable_math.h"
#include "base/text/printable.h"
#include "core/model/config/model_config.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"
#include "core/weights/arrange/gathered_rows.h"
#include "core/weights/checkpoint.h"

namespace foretoken {
namespace {

using Stretches = std::vector<Stretch>;

// The tensors of one recurrent layer, each under the name that it has in a file.
class LayerArranger {
 public:
  LayerArranger(int layer, const DeltaShape& shape, Checkpoint* checkpoint)
      : at_(fmt::format("layers.{}.delta.", layer)), shape_(shape), checkpoint_(checkpoint) {}

  // Whether there is such a tensor, of this size in this dimension.
  bool Has(const char* name, std::int64_t size, std::size_t dimension = 0) const {
    const TensorView* tensor = checkpoint_->Find(at_ + name);
    return tensor != nullptr && tensor->shape.size() > dimension &&
           tensor->shape[dimension] == size;
  }
  bool HasLogRates() const { return Has("log_rates", shape_.value_heads); }
  bool HasTogether() const {
    return Has("qkvz.weight", shape_.conv_width() + shape_.value_width());
  }
  // All that Reorder looks for.
  bool HasApart() const {
    const std::int64_t heads = shape_.value_heads;
    return Has("qkv.weight", shape_.conv_width()) && Has("taps.weight", shape_.conv_width()) &&
           Has("z.weight", shape_.value_width()) && Has("a.weight", heads) &&
           Has("b.weight", heads) && Has("rate_bias", heads) &&
           Has("o.weight", shape_.value_width(), /*dimension=*/1);
  }

  // Arranges the rates of the value heads in this order.
  void Rates(const std::vector<int>& order) {
    const TensorView from = *checkpoint_->Find(at_ + "log_rates");
    Put("log_rates", {WeightFormat::kF32, from.shape, nullptr}, "minus_rates", [from, order] {
      std::vector<float> rates(order.size());
      LoadElements(from, 0, from.elements(), rates.data());
      std::vector<std::byte> made(order.size() * sizeof(float));
      for (std::size_t i = 0; i < order.size(); ++i) {
        const double log_rate = rates[order[i]];
        const auto rate = static_cast<float>(-PortableExp(log_rate));
        std::memcpy(made.data() + i * sizeof(float), &rate, sizeof(float));
      }
      return made;
    });
    checkpoint_->tensors.erase(at_ + "log_rates");
  }

  // Queries, keys and values, and gates, which lie by key heads.
  void Apart() {
    const TensorView from = *checkpoint_->Find(at_ + "qkvz.weight");
    const std::int64_t keys = shape_.key_dim;
    const std::int64_t values = shape_.value_width() / shape_.key_heads;
    Stretches qkv;
    Stretches z;
    const auto add = [&](std::int64_t first, std::int64_t count, Stretches* to) {
      for (int head = 0; head < shape_.key_heads; ++head) {
        to->push_back({head * 2 * (keys + values) + first, count});
      }
    };
    add(0, keys, &qkv);
    add(keys, keys, &qkv);
    add(2 * keys, values, &qkv);
    add(2 * keys + values, values, &z);
    PutRows("qkvz.weight", "qkv.weight", shape_.conv_width(), std::move(qkv));
    PutRows("qkvz.weight", "z.weight", shape_.value_width(), std::move(z));
    checkpoint_->tensors.erase(at_ + "qkvz.weight");
  }

  // Value heads in this order.
  void Reorder(const std::vector<int>& order) {
    const auto stretches = [&](std::int64_t before, std::int64_t width) {
      Stretches all;
      if (before > 0) all.push_back({0, before});
      for (const int head : order) all.push_back({before + head * width, width});
      return all;
    };
    const std::int64_t before = 2 * std::int64_t{shape_.key_width()};
    const std::int64_t width = shape_.value_dim;
    for (const char* name : {"qkv.weight", "taps.weight"}) {
      PutRows(name, name, shape_.conv_width(), stretches(before, width));
    }
    PutRows("z.weight", "z.weight", shape_.value_width(), stretches(0, width));
    for (const char* name : {"a.weight", "b.weight", "rate_bias"}) {
      PutRows(name, name, shape_.value_heads, stretches(0, 1));
    }
    const TensorView out = *checkpoint_->Find(at_ + "o.weight");
    Put("o.weight", {out.format, out.shape, nullptr}, "o.weight",
        [out, columns = stretches(0, width)] { return GatheredColumns(out, columns); });
  }

 private:
  void PutRows(const char* from, const char* to, std::int64_t count, Stretches rows) {
    const TensorView tensor = *checkpoint_->Find(at_ + from);
    TensorView made{tensor.format, tensor.shape, nullptr};
    made.shape[0] = count;
    Put(from, made, to, [tensor, rows = std::move(rows)] { return GatheredRows(tensor, rows); });
  }

  // `made` of `from`, under the name `to`.
  void Put(const char* from, const TensorView& made, const char* to,
           std::function<std::vector<std::byte>()> make) {
    const TensorView source = *checkpoint_->Find(at_ + from);
    const std::string name = at_ + to;
    checkpoint_->names_in_files.insert_or_assign(name, checkpoint_->NameInFile(at_ + from));
    checkpoint_->arranged[name] = {{{source.data, source.bytes()}}, std::move(make)};
    checkpoint_->tensors.insert_or_assign(name, made);
  }

  std::string at_;  // The beginning of its tensors' names.
  const DeltaShape& shape_;
  Checkpoint* checkpoint_;
};

// All value heads as they are: those that take the first key head come first.
std::vector<int> HeadsInOrder(const DeltaShape& shape) {
  std::vector<int> order;
  for (int head = 0; head < shape.value_heads; ++head) order.push_back(head);
  return order;
}

// The first of each key head, then the second of each, and so on.
std::vector<int> HeadsInTurns(const DeltaShape& shape) {
  const int of_key = shape.value_heads / shape.key_heads;
  std::vector<int> order;
  for (int i = 0; i < of_key; ++i) {
    for (int key = 0; key < shape.key_heads; ++key) order.push_back(key * of_key + i);
  }
  return order;
}

// What folders and GGUF files of recurrent models keep differently (Family::arrange_for_gguf):
// files have what heads forget by as it is used, negative, not as its logarithm.
// Folders of Qwen3-Next have queries, keys, values and gates by key heads, files each by itself.
void ArrangeQwen3NextForGguf(Checkpoint* checkpoint, const ModelConfig& config) {
  for (int i = 0; i < config.layer_count(); ++i) {
    const LayerSpec& layer = config.layers[i];
    if (!layer.is_recurrent()) continue;
    LayerArranger arranger(i, layer.delta, checkpoint);
    if (arranger.HasLogRates()) arranger.Rates(HeadsInOrder(layer.delta));
    if (arranger.HasTogether()) arranger.Apart();
  }
}

// Value heads of a key head are neighbours in folders of Qwen3.5; in files they are as many apart
// as there are key heads.
void ArrangeQwen35ForGguf(Checkpoint* checkpoint, const ModelConfig& config) {
  for (int i = 0; i < config.layer_count(); ++i) {
    const LayerSpec& layer = config.layers[i];
    if (!layer.is_recurrent()) continue;
    LayerArranger arranger(i, layer.delta, checkpoint);
    if (!arranger.HasLogRates() || !arranger.HasApart()) continue;
    const std::vector<int> order = HeadsInTurns(layer.delta);
    arranger.Rates(order);
    arranger.Reorder(order);
  }
}

constexpr TensorName kQwenNextNames[] = {
    {"delta.qkvz", "linear_attn.in_proj_qkvz", "ssm_in"},
    {"delta.ba", "linear_attn.in_proj_ba", "ssm_ba"},
    {"mlp_norm", "post_attention_layernorm", "post_attention_norm"},
    {"delta.qkv", "linear_attn.in_proj_qkv", "attn_qkv"},
    {"delta.z", "linear_attn.in_proj_z", "attn_gate"},
    {"delta.b", "linear_attn.in_proj_b", "ssm_beta"},
    {"delta.a", "linear_attn.in_proj_a", "ssm_alpha"},
    {"delta.taps", "linear_attn.conv1d", "ssm_conv1d"},
    {"delta.log_rates", "linear_attn.A_log", ""},
    {"delta.minus_rates", "", "ssm_a"},
    {"delta.rate_bias", "linear_attn.dt_bias", "ssm_dt.bias"},
    {"delta.rate_bias", "", "ssm_dt"},  // In Ollama's files.
    {"delta.norm", "linear_attn.norm", "ssm_norm"},
    {"delta.o", "linear_attn.out_proj", "ssm_out"},
};

// Qwen3.5 has no inputs together.
constexpr auto k35Names = std::span(kQwenNextNames).subspan(2);

// What all of their classes have, then what each has besides; where all layers have experts there
// is no width of an MLP.
constexpr std::string_view kQwenNextFields = R"({
    "attention_bias": false, "full_attention_interval": 4, "head_dim": 256, "layer_types": null,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_value_head_dim": 128,
    "max_position_embeddings": 32768, "partial_rotary_factor": 0.25})";
constexpr std::string_view kNextFields = R"({
    "decoder_sparse_step": 1, "intermediate_size": 5632, "mlp_only_layers": null,
    "moe_intermediate_size": 512, "norm_topk_prob": true, "num_experts": 512,
    "num_experts_per_tok": 10, "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512})";
constexpr std::string_view k35Fields = R"({"num_key_value_heads": 4})";
constexpr std::string_view k35MoeFields = R"({
    "intermediate_size": 1, "moe_intermediate_size": 512, "num_experts": 256,
    "num_experts_per_tok": 8, "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512})";

constexpr int kMostTaps = 64;

DeltaShape ReadDelta(ConfigFields& fields, bool keys_in_turns) {
  DeltaShape delta;
  delta.key_heads = fields.IntOr("linear_num_key_heads", 1, kMaxHeads, 16);
  delta.value_heads = fields.IntOr("linear_num_value_heads", 1, kMaxHeads, 32);
  delta.key_dim = fields.IntOr("linear_key_head_dim", 1, kMaxHeadDim, 128);
  delta.value_dim = fields.IntOr("linear_value_head_dim", 1, kMaxHeadDim, 128);
  // GGUF files have that of all heads together.
  const int together =
      fields.IntOr("linear_value_width", 1, kMaxHidden, delta.value_dim * delta.value_heads);
  delta.value_dim = together / delta.value_heads;
  delta.keys_in_turns = keys_in_turns;
  delta.taps = fields.IntOr("linear_conv_kernel_dim", 1, kMostTaps, 4);
  if (fields.ok() && delta.value_heads % delta.key_heads != 0) {
    fields.Refuse("linear_num_value_heads {} is not a multiple of linear_num_key_heads {}",
                  delta.value_heads, delta.key_heads);
  }
  return delta;
}

// All layers but each of so many are recurrent; those that are not have gates. `keys_in_turns` is
// DeltaShape's.
void DescribeRecurrent(ConfigFields& fields, bool keys_in_turns, ModelConfig* config) {
  if (config->layers.front().attention.qkv_bias) {
    fields.Refuse("has attention_bias, but gated attention with biases is not supported");
  }
  if (config->layers.front().mlp.activation != Activation::kSilu) {
    fields.Refuse("hidden_act is not silu, which is not supported beside recurrent layers");
  }
  const DeltaShape delta = ReadDelta(fields, keys_in_turns);
  const int every = fields.IntOr("full_attention_interval", 1, kMaxLayers, 4);
  const std::vector<std::string> types = fields.Strings("layer_types", config->layers.size());
  for (std::size_t i = 0; i < config->layers.size() && fields.ok(); ++i) {
    LayerSpec& layer = config->layers[i];
    if (!types.empty() && types[i] != "full_attention" && types[i] != "linear_attention") {
      fields.Refuse(
          "layer_types has {}, but only full_attention and linear_attention are supported",
          Printable(types[i]));
    }
    if (types.empty() ? (i + 1) % Size(every) != 0 : types[i] == "linear_attention") {
      layer.attention = {};
      layer.delta = delta;
    } else {
      layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
      layer.attention.output_gate = true;
    }
  }
}

void AddExperts(ConfigFields& fields, ModelConfig* config) {
  if (fields.ok()) SetQwenExperts(fields, /*normalised=*/true, config);
  const int shared = fields.Integer("shared_expert_intermediate_size", 1, kMaxIntermediate);
  if (fields.ok()) SetShared(shared, true, config);
}

void DescribeQwen3Next(ConfigFields& fields, ModelConfig* config) {
  DescribeRecurrent(fields, /*keys_in_turns=*/false, config);
  AddExperts(fields, config);
}

// Folders are read in the form of files, in which value heads take the key heads in turns.
void DescribeQwen35(ConfigFields& fields, ModelConfig* config) {
  DescribeRecurrent(fields, /*keys_in_turns=*/true, config);
}

void DescribeQwen35Moe(ConfigFields& fields, ModelConfig* config) {
  DescribeQwen35(fields, config);
  AddExperts(fields, config);
}

// Taps are a matrix, whatever dimensions folders give them.
Status ArrangeTaps(Checkpoint* checkpoint) {
  for (auto& [name, tensor] : checkpoint->tensors) {
    if (!name.ends_with(".taps.weight") || tensor.shape.size() != 3) continue;
    if (tensor.shape[1] == 1) tensor.shape.erase(tensor.shape.begin() + 1);
  }
  return {};
}

}  // namespace

const Family kQwen3Next = {.name = "qwen3_next",
                           .architecture = "Qwen3NextForCausalLM",
                           .gguf = "qwen3next",
                           .names = kQwenNextNames,
                           .folder_gains_less_one = true,
                           .fields = kNextFields,
                           .relatives_fields = kQwenNextFields,
                           .describe = DescribeQwen3Next,
                           .gguf_fields = RecurrentFromGguf,
                           .gguf_keys = RecurrentToGguf,
                           .arrange_for_gguf = ArrangeQwen3NextForGguf,
                           .arrange = ArrangeTaps};

const Family kQwen35 = {.name = "qwen3_5_text",
                        .architecture = "Qwen3_5ForCausalLM",
                        .gguf = "qwen35",
                        .names = k35Names,
                        .folder_gains_less_one = true,
                        .fields = k35Fields,
                        .relatives_fields = kQwenNextFields,
                        .describe = DescribeQwen35,
                        .gguf_fields = RecurrentFromGguf,
                        .gguf_keys = RecurrentToGguf,
                        .arrange_for_gguf = ArrangeQwen35ForGguf,
                        .reads_as_gguf = true,
                        .arrange = ArrangeTaps};

const Family kQwen35Moe = {.name = "qwen3_5_moe_text",
                           .architecture = "Qwen3_5MoeForCausalLM",
                           .gguf = "qwen35moe",
                           .names = k35Names,
                           .folder_gains_less_one = true,
                           .fields = k35MoeFields,
                           .relatives_fields = kQwenNextFields,
                           .describe = DescribeQwen35Moe,
                           .gguf_fields = RecurrentFromGguf,
                           .gguf_keys = RecurrentToGguf,
                           .arrange_for_gguf = ArrangeQwen35ForGguf,
                           .reads_as_gguf = true,
                           .arrange = ArrangeTaps};

}  // namespace foretoken
