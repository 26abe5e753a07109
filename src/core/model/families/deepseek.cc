#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "base/numbers/portable_math.h"
#include "base/result.h"
#include "base/text/printable.h"
#include "core/model/config/rope_config.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"
#include "core/tensor/tensor_view.h"
#include "core/weights/checkpoint.h"

namespace foretoken {
namespace {

// How a tensor [heads * (key + value), rank] that makes the keys and values of heads has its rows:
// head by head those of its key, then those of its value.
struct HeadRows {
  std::int64_t heads = 0;
  std::int64_t key = 0;
  std::int64_t value = 0;
};

// The rows of keys, transposed: [heads, rank, key]. Of a format that is not in blocks.
std::vector<std::byte> KeyColumns(const TensorView& from, const HeadRows& rows) {
  const std::size_t rank = from.shape[1];
  const std::size_t size = from.bytes() / Size(from.elements());
  const std::size_t keys = rows.key;
  std::vector<std::byte> made(Size(rows.heads) * keys * rank * size);
  std::byte* to = made.data();
  for (std::int64_t head = 0; head < rows.heads; ++head) {
    const auto first = Size(head * (rows.key + rows.value));
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t key = 0; key < keys; ++key, to += size) {
        std::memcpy(to, from.data + ((first + key) * rank + i) * size, size);
      }
    }
  }
  return made;
}

// The rows of values: [heads, value, rank].
std::vector<std::byte> ValueRows(const TensorView& from, const HeadRows& rows) {
  const std::size_t row = from.bytes() / Size(from.shape[0]);
  std::vector<std::byte> made;
  for (std::int64_t head = 0; head < rows.heads; ++head) {
    const auto first = Size(head * (rows.key + rows.value) + rows.key) * row;
    made.insert(made.end(), from.data + first, from.data + first + rows.value * row);
  }
  return made;
}

// The heads of a layer by the shapes of its tensors; none where they do not fit together, which is
// found when they are asked for.
HeadRows RowsOf(const Checkpoint& checkpoint, const std::string& layer) {
  const auto size = [&](const char* name, std::size_t dimension) -> std::int64_t {
    const TensorView* view = checkpoint.Find(layer + name + ".weight");
    return view == nullptr || view->shape.size() != 2 ? 0 : view->shape[dimension];
  };
  const std::int64_t values = size("o", 1);
  const std::int64_t keys = size("kv_b", 0) - values;
  const std::int64_t queries = size("q_b", 0) + size("q", 0);
  const std::int64_t rotated = size("kv_a", 0) - size("kv_b", 1);
  if (values <= 0 || keys <= 0 || rotated <= 0 || queries <= keys) return {};
  const std::int64_t heads = (queries - keys) / rotated;
  if (heads == 0 || values % heads != 0 || keys % heads != 0) return {};
  return {heads, keys / heads, values / heads};
}

// Folders of models with latent attention keep what makes keys and values of all heads in one
// tensor, "kv_b", head by head: it becomes "k_b" [heads, rank, key] and "v_b" [heads, value, rank]
// (Family::arrange). One that does not fit the others of its layer stays, and is found later.
Status ArrangeKeysAndValues(Checkpoint* checkpoint) {
  std::vector<std::pair<std::string, TensorView>> both;
  for (const auto& [name, view] : checkpoint->tensors) {
    if (name.ends_with(".kv_b.weight") && !IsQuantized(view.format)) both.emplace_back(name, view);
  }
  for (const auto& [name, view] : both) {
    const std::string layer = name.substr(0, name.size() - std::strlen("kv_b.weight"));
    const HeadRows rows = RowsOf(*checkpoint, layer);
    if (rows.heads == 0) continue;
    const std::int64_t rank = view.shape[1];
    const auto arrange = [&, tensor = view](const std::string& ours,
                                            std::vector<std::int64_t> shape, auto make) {
      checkpoint->arranged[ours] = {{{tensor.data, tensor.bytes()}},
                                    [tensor, rows, make] { return make(tensor, rows); }};
      checkpoint->tensors[ours] = {tensor.format, std::move(shape), nullptr};
    };
    arrange(layer + "k_b.weight", {rows.heads, rank, rows.key}, KeyColumns);
    arrange(layer + "v_b.weight", {rows.heads, rows.value, rank}, ValueRows);
    checkpoint->tensors.erase(name);
  }
  return {};
}

// Folders keep what makes keys and values of all heads in one tensor, head by head; GGUF files have
// it in two, of which that of keys is transposed.
constexpr TensorName kDeepseekNames[] = {
    {"q_a", "self_attn.q_a_proj", "attn_q_a"},
    {"q_a_norm", "self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"q_b", "self_attn.q_b_proj", "attn_q_b"},
    {"kv_a", "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"kv_a_norm", "self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"kv_b", "self_attn.kv_b_proj", ""},
    {"k_b", "self_attn.kv_b_proj", "attn_k_b"},
    {"v_b", "self_attn.kv_b_proj", "attn_v_b"},
    {"shared.gate", "mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"shared.up", "mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"shared.down", "mlp.shared_experts.down_proj", "ffn_down_shexp"},
};

// What the classes have, and what the models' authors read besides.
constexpr std::string_view kV2Fields = R"({
    "attention_bias": false, "first_k_dense_replace": 0, "kv_lora_rank": 512, "mlp_bias": false,
    "moe_intermediate_size": 1407, "n_group": null, "n_routed_experts": null,
    "n_shared_experts": 2, "norm_topk_prob": false, "num_experts": 64,
    "num_experts_per_tok": null, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "routed_scaling_factor": 1.0, "scoring_func": null,
    "topk_group": null, "topk_method": "greedy", "v_head_dim": 128})";
constexpr std::string_view kV3Fields = R"({
    "attention_bias": false, "first_k_dense_replace": 3, "kv_lora_rank": 512,
    "max_position_embeddings": 4096, "moe_intermediate_size": 2048, "n_group": 8,
    "n_routed_experts": null, "n_shared_experts": 1, "norm_topk_prob": true,
    "num_experts_per_tok": 8, "num_key_value_heads": 128, "num_local_experts": 256,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "rope_interleave": true, "routed_scaling_factor": 2.5, "scoring_func": null, "topk_group": 4,
    "topk_method": null, "v_head_dim": 128})";

// Rows choose by sigmoids and a bias among the groups whose two best experts score most, or by
// the softmax among those that have the best expert.
Routing ReadRouting(ConfigFields& fields, bool sigmoids) {
  Routing routing{.weights = Routing::Weights::kSoftmaxOfAll};
  const bool normalised = fields.BoolOr("norm_topk_prob", false);
  if (sigmoids) {
    routing.weights = normalised ? Routing::Weights::kSigmoidsOfSum : Routing::Weights::kSigmoids;
    routing.group_score = Routing::GroupScore::kTwoLargest;
  } else if (normalised) {
    fields.Refuse("norm_topk_prob is true, which is supported with scoring_func sigmoid only");
  }
  routing.factor = static_cast<float>(fields.NumberOr("routed_scaling_factor", 1e-6, 1e6, 1));
  std::string method = sigmoids ? "noaux_tc" : "greedy";
  fields.String("topk_method", &method);
  if (method == "greedy" && !sigmoids) return routing;
  routing.groups = fields.IntOr("n_group", 1, kMaxExperts, 1);
  routing.chosen_groups = fields.IntOr("topk_group", 1, kMaxExperts, 1);
  const char* only = sigmoids ? "noaux_tc" : "group_limited_greedy";
  if (method != only) {
    fields.Refuse("topk_method is {}, but only {}{} is supported here", Printable(method),
                  sigmoids ? "" : "greedy or ", only);
  }
  return routing;
}

// What scores are divided by grows with the stretch of the context.
double ScaleOf(ConfigFields& fields, int width, const RopeSpec& rope) {
  double all_dims = 0;
  double factor = rope.scaling.factor;
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    ConfigFields scaling = fields.Within(name);
    all_dims = scaling.NumberOr("mscale_all_dim", 0, 1e6, all_dims);
    // Whatever the type is, if there is one.
    if (scaling.Has("type") || scaling.Has("rope_type")) {
      factor = scaling.NumberOr("factor", 0, 1e6, factor);
    }
  }
  const double grown = factor > 1 ? 0.1 * all_dims * PortableLog(factor) + 1 : 1;
  return grown * grown / std::sqrt(static_cast<double>(width));
}

void SetLatentAttention(ConfigFields& fields, ModelConfig* config) {
  LatentSpec latent;
  latent.kv_rank = fields.Integer("kv_lora_rank", 2, kMaxHeadDim);
  latent.query_rank = fields.IntOr("q_lora_rank", 0, kMaxHidden, 0);
  latent.nope_dim = fields.Integer("qk_nope_head_dim", 1, kMaxHeadDim);
  latent.value_dim = fields.Integer("v_head_dim", 1, kMaxHeadDim);
  const int rotated = fields.Integer("qk_rope_head_dim", 2, kMaxHeadDim);
  const bool biased = fields.BoolOr("attention_bias", false);
  if (!fields.ok()) return;
  if (latent.kv_rank % 2 != 0 || rotated % 2 != 0) {
    fields.Refuse("kv_lora_rank {} and qk_rope_head_dim {} must be even", latent.kv_rank, rotated);
  }
  if (biased) fields.Refuse("attention_bias is true, which is not supported");
  if (fields.BoolOr("mlp_bias", false)) fields.Refuse("mlp_bias is true, which is not supported");
  if (!fields.BoolOr("rope_interleave", true) || fields.IsNull("rope_interleave")) {
    fields.Refuse("rope_interleave is not true, which is not supported");
  }
  config->ropes = {ReadRope(fields, rotated, {config->max_positions, config->max_positions})};
  const double scale = ScaleOf(fields, latent.nope_dim + rotated, config->ropes[0]);
  for (LayerSpec& layer : config->layers) {
    layer.attention.latent = latent;
    layer.attention.kv_heads = 1;
    layer.attention.head_dim = latent.kv_rank + rotated;
    layer.attention.scale = scale;
  }
}

void DescribeDeepseek(ConfigFields& fields, const char* usual_scores, ModelConfig* config) {
  SetLatentAttention(fields, config);
  std::string scores = usual_scores;
  fields.String("scoring_func", &scores);
  if (scores != usual_scores) {
    fields.Refuse("scoring_func is {}, but models of {} have {}", Printable(scores), config->family,
                  usual_scores);
  }
  const bool sigmoids = scores == "sigmoid";
  const Routing routing = ReadRouting(fields, sigmoids);
  const int dense = fields.IntOr("first_k_dense_replace", 0, kMaxLayers, 0);
  const int step = fields.IntOr("moe_layer_freq", 1, kMaxLayers, 1);
  const int width = fields.Integer("moe_intermediate_size", 1, kMaxIntermediate);
  const int shared = fields.IntOr("n_shared_experts", 0, kMaxExperts, 0);
  if (!fields.ok()) return;
  const auto sparse = [&](int layer) { return layer >= dense && layer % step == 0; };
  SetExperts(fields, routing, width, sparse, config);
  SetShared(shared * width, false, config);
  for (LayerSpec& layer : config->layers) {
    layer.mlp.choice_bias = sigmoids && layer.mlp.has_experts();
  }
}
void DescribeV2(ConfigFields& fields, ModelConfig* config) {
  DescribeDeepseek(fields, "softmax", config);
}
void DescribeV3(ConfigFields& fields, ModelConfig* config) {
  DescribeDeepseek(fields, "sigmoid", config);
}

}  // namespace

const Family kDeepseekV2 = {.name = "deepseek_v2",
                            .architecture = "DeepseekV2ForCausalLM",
                            .gguf = "deepseek2",
                            .names = kDeepseekNames,
                            .fields = kV2Fields,
                            .describe = DescribeV2,
                            .gguf_fields = DeepseekFromGguf,
                            .gguf_keys = DeepseekToGguf,
                            .arrange = ArrangeKeysAndValues};

const Family kDeepseekV3 = {.name = "deepseek_v3",
                            .architecture = "DeepseekV3ForCausalLM",
                            .gguf = "deepseek2",
                            .names = kDeepseekNames,
                            .fields = kV3Fields,
                            .describe = DescribeV3,
                            .gguf_fields = DeepseekFromGguf,
                            .gguf_keys = DeepseekToGguf,
                            .arrange = ArrangeKeysAndValues};

}  // namespace foretoken
