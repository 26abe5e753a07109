#include "weights/gguf/gguf_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "base/printable.h"
#include "weights/gguf/gguf_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kLayer = "blk.";
constexpr std::string_view kCanonicalLayer = "model.layers.";
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

constexpr std::pair<std::string_view, std::string_view> kOfModel[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};
constexpr std::pair<std::string_view, std::string_view> kOfLayers[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.bias", "self_attn.o_proj.bias"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

// Reads keys of one architecture into a configuration; keeps the first error.
class ConfigReader {
 public:
  ConfigReader(const GgufMetadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  void Needed(std::string_view name, const char* field) {
    const std::string key = Key(name);
    if (metadata_.Find(key) == nullptr) return Keep(InvalidInput("lacks the key " + key));
    Optional(key, field);
  }
  // By its whole key.
  void Optional(const std::string& key, const char* field) {
    constexpr std::int64_t kMost = 1 << 30;
    std::int64_t value = -1;
    Keep(metadata_.Integer(key, 0, kMost, &value));
    if (value >= 0) json[field] = value;
  }
  // Absent or positive.
  void Fraction(std::string_view name, const char* field) {
    const std::string key = Key(name);
    if (metadata_.Find(key) == nullptr) return;
    double value = 0;
    Keep(metadata_.Number(key, &value));
    if (!status.ok()) return;
    if (!(value > 0 && value <= std::numeric_limits<float>::max())) {
      return Keep(InvalidInput(fmt::format("{} is {}, but must be a positive number", key, value)));
    }
    // As the file has it: a float, whose shortest decimal form is meant.
    json[field] = Json::parse(fmt::format("{}", static_cast<float>(value)));
  }
  void Keep(const Status& read) {
    if (status.ok() && !read.ok()) status = read.error();
  }

  Json json = Json::object();
  Status status;

 private:
  const GgufMetadata& metadata_;
  std::string architecture_;
};

Status CheckRope(const GgufMetadata& metadata, const TensorMap& tensors, ConfigReader* reader) {
  if (const auto found = tensors.find(kRopeFactors); found != tensors.end()) {
    const TensorView& view = found->second;
    std::vector<float> factors(static_cast<std::size_t>(view.elements()));
    LoadElements(view, 0, view.elements(), factors.data());
    reader->json["rope_scaling"] = {{"type", "factors"}, {"factors", factors}};
    return {};
  }
  std::string type = "none";
  FT_RETURN_IF_ERROR(metadata.String(reader->Key("rope.scaling.type"), &type));
  if (type == "none") return {};
  double factor = 1;
  FT_RETURN_IF_ERROR(metadata.Number(reader->Key("rope.scaling.factor"), &factor));
  if (type != "linear") {
    return InvalidInput(fmt::format("{} is {}, but only none and linear are supported",
                                    reader->Key("rope.scaling.type"), Printable(type)));
  }
  reader->json["rope_scaling"] = {{"type", "linear"}, {"factor", factor}};
  return {};
}

// Rotation of a part of each head would be another arithmetic.
Status CheckRotated(const GgufMetadata& metadata, const ConfigReader& reader) {
  std::int64_t rotated = 0;
  FT_RETURN_IF_ERROR(metadata.Integer(reader.Key("rope.dimension_count"), 0, 1 << 30, &rotated));
  const auto number = [&reader](const char* field, std::int64_t otherwise) {
    return reader.json.value(field, otherwise);
  };
  const std::int64_t heads = std::max(std::int64_t{1}, number("num_attention_heads", 1));
  const std::int64_t head = number("head_dim", number("hidden_size", 0) / heads);
  if (rotated == 0 || rotated == head) return {};
  return InvalidInput(
      fmt::format("{} is {}, but heads have {} dimensions, and only rotating all of "
                  "them is supported",
                  reader.Key("rope.dimension_count"), rotated, head));
}

// "blk.3.attn_q.weight" as 3 and "attn_q.weight", where `prefix` is "blk.".
struct LayerName {
  std::string_view number;
  std::string_view rest;
};
std::optional<LayerName> SplitLayerName(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const std::size_t dot = name.find('.');
  int layer = -1;
  if (dot == std::string_view::npos || !ParseNumber(name.substr(0, dot), &layer)) {
    return std::nullopt;
  }
  // One name for each layer.
  if (layer < 0 || name.substr(0, dot) != std::to_string(layer)) return std::nullopt;
  return LayerName{name.substr(0, dot), name.substr(dot + 1)};
}

}  // namespace

std::string CanonicalName(std::string_view gguf_name) {
  for (const auto& [theirs, ours] : kOfModel) {
    if (gguf_name == theirs) return std::string(ours);
  }
  const auto layer = SplitLayerName(gguf_name, kLayer);
  if (!layer) return {};
  for (const auto& [theirs, ours] : kOfLayers) {
    if (layer->rest == theirs) return fmt::format("{}{}.{}", kCanonicalLayer, layer->number, ours);
  }
  return {};
}

std::string GgufName(std::string_view canonical_name) {
  for (const auto& [theirs, ours] : kOfModel) {
    if (canonical_name == ours) return std::string(theirs);
  }
  if (const auto layer = SplitLayerName(canonical_name, kCanonicalLayer)) {
    for (const auto& [theirs, ours] : kOfLayers) {
      if (layer->rest == ours) return fmt::format("{}{}.{}", kLayer, layer->number, theirs);
    }
  }
  return std::string(canonical_name);
}

Result<std::string> ConfigFromGguf(const GgufMetadata& metadata, const TensorMap& tensors,
                                   std::string_view where) {
  const auto refuse = [where](const Error& error) {
    return InvalidInput(fmt::format("{}: {}", where, error.message));
  };
  std::string architecture;
  if (const Status read = metadata.String("general.architecture", &architecture); !read.ok()) {
    return refuse(read.error());
  }
  if (architecture != "llama") {
    return refuse(InvalidInput(
        fmt::format("is of architecture '{}' (general.architecture), but only llama can run",
                    Printable(architecture))));
  }
  const auto embedding = tensors.find("token_embd.weight");
  if (embedding == tensors.end()) return refuse(InvalidInput("lacks tensor token_embd.weight"));
  ConfigReader reader(metadata, architecture);
  reader.json = {{"model_type", "llama"},
                 {"architectures", {"LlamaForCausalLM"}},
                 {"vocab_size", embedding->second.shape.front()},
                 {"tie_word_embeddings", tensors.find("output.weight") == tensors.end()}};
  reader.Needed("embedding_length", "hidden_size");
  reader.Needed("feed_forward_length", "intermediate_size");
  reader.Needed("block_count", "num_hidden_layers");
  reader.Needed("attention.head_count", "num_attention_heads");
  reader.Needed("context_length", "max_position_embeddings");
  reader.Optional(reader.Key("attention.head_count_kv"), "num_key_value_heads");
  reader.Optional(reader.Key("attention.key_length"), "head_dim");
  reader.Optional(reader.Key("attention.sliding_window"), "sliding_window");
  reader.Optional("tokenizer.ggml.bos_token_id", "bos_token_id");
  reader.Optional("tokenizer.ggml.eos_token_id", "eos_token_id");
  reader.Fraction("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  reader.Fraction("rope.freq_base", "rope_theta");
  reader.Keep(CheckRope(metadata, tensors, &reader));
  reader.Keep(CheckRotated(metadata, reader));
  if (!reader.status.ok()) return refuse(reader.status.error());
  return reader.json.dump(2);
}

Result<Checkpoint> ReadGgufModel(const std::filesystem::path& path) {
  FT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  Checkpoint checkpoint{
      .path = path, .alternating_heads = true, .gguf = file.metadata(), .files = file.parts()};
  FT_ASSIGN_OR_RETURN(checkpoint.config.json,
                      ConfigFromGguf(file.metadata(), file.tensors(), path.string()));
  checkpoint.config.where = path.string();
  for (const auto& [name, view] : file.tensors()) {
    if (name == kRopeFactors) continue;  // They are in the configuration.
    std::string canonical = CanonicalName(name);
    if (canonical.empty()) {
      return InvalidInput(
          fmt::format("{}: has tensor '{}', which is none of a Llama model; others cannot run yet",
                      path.string(), Printable(name)));
    }
    checkpoint.tensors.emplace(std::move(canonical), view);
  }
  return checkpoint;
}

}  // namespace foretoken
