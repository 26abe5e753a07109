#include "core/model/families/gguf/gguf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::string_view kRopeFactors = "rope_freqs.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";

// Whole numbers and fractions by their names behind the architecture's, and the fields that they
// are in config.json.
constexpr std::pair<const char*, const char*> kIntegers[] = {
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.sliding_window", "sliding_window"},
    {"rope.dimension_count", "rotary_dims"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_intermediate_size"},
};
constexpr std::pair<const char*, const char*> kFractions[] = {
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"rope.local.freq_base", "rope_local_base_freq"},  // In Ollama's files.
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"attention.scale", "attention_multiplier"},
};

// What changes the computation and is in no model that there is. (Sections of what is rotated tell
// places in images apart; the positions of a text are the same in all of them.)
constexpr const char* kNotComputed[] = {"attention.clamp_kqv", "attention.max_alibi_bias",
                                        "rope.scaling.alpha"};

// Reads keys of one architecture into a configuration; keeps the first error.
class ConfigReader {
 public:
  ConfigReader(const GgufMetadata& metadata, const TensorMap& tensors, std::string architecture)
      : metadata_(metadata), tensors_(tensors), architecture_(std::move(architecture)) {}

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  void Needed(std::string_view name, const char* field) {
    const std::string key = Key(name);
    if (metadata_.Find(key) == nullptr) return Keep(InvalidInput("lacks the key " + key));
    Optional(key, field);
  }
  // Files count layers that guess further tokens among the others, behind which they lie.
  void LeaveOutPredictionLayers() {
    const std::string key = Key("nextn_predict_layers");
    std::int64_t guessing = 0;
    Keep(metadata_.Integer(key, 0, kMaxLayers, &guessing));
    if (!status.ok() || guessing == 0) return;
    const int layers = json.value("num_hidden_layers", 0);
    if (guessing >= layers) {
      return Keep(Invalid("{} is {}, but must be less than {} {}", key, guessing,
                          Key("block_count"), layers));
    }
    json["num_hidden_layers"] = layers - guessing;
  }
  // By its whole key.
  void Optional(const std::string& key, const char* field) {
    constexpr std::int64_t kMost = 1 << 30;
    if (const GgufValue* found = metadata_.Find(key);
        found != nullptr && std::holds_alternative<GgufArray>(*found)) {
      return OfLayers(std::get<GgufArray>(*found), key, field);
    }
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
      return Keep(Invalid("{} is {}, but must be a positive number", key, value));
    }
    json[field] = Shortest(value);
  }
  void Rope() {
    if (tensors_.find(kRopeFactors) != tensors_.end()) {
      json["rope_scaling"] = {{"type", "factors"}, {"factors", Floats(kRopeFactors)}};
      return;
    }
    if (tensors_.find(kLongFactors) != tensors_.end()) return LongRope();
    // A factor by itself is of the kind that there was first.
    const bool factor = metadata_.Find(Key("rope.scaling.factor")) != nullptr;
    std::string type = factor ? "linear" : "none";
    Keep(metadata_.String(Key("rope.scaling.type"), &type));
    if (!status.ok() || type == "none") return;
    if (type != "linear" && type != "yarn") {
      return Keep(Invalid("{} is {}, but only none, linear and yarn are supported",
                          Key("rope.scaling.type"), Printable(type)));
    }
    Json scaling = {{"type", type}};
    Copy("rope.scaling.factor", "factor", &scaling);
    if (type == "yarn") {
      Copy("rope.scaling.original_context_length", "original_max_position_embeddings", &scaling);
      Copy("rope.scaling.yarn_beta_fast", "beta_fast", &scaling);
      Copy("rope.scaling.yarn_beta_slow", "beta_slow", &scaling);
      Copy("rope.scaling.yarn_attn_factor", "attention_factor", &scaling);
    }
    json["rope_scaling"] = std::move(scaling);
  }

  // Which layers have a window: every layer but each of so many, or a list of all.
  void WindowPattern() {
    const std::string key = Key("attention.sliding_window_pattern");
    const GgufValue* found = metadata_.Find(key);
    if (found == nullptr) return;
    if (!std::holds_alternative<GgufArray>(*found)) return Optional(key, "sliding_window_pattern");
    const auto& array = std::get<GgufArray>(*found);
    if (array.type == GgufType::kString || array.type == GgufType::kArray) {
      return Keep(InvalidInput(key + " must be a list of booleans"));
    }
    for (const double windowed : array.Numbers()) {
      json["layer_types"].push_back(windowed != 0 ? "sliding_attention" : "full_attention");
    }
  }
  // Names the layers without experts of a model that has some.
  void DenseLayers() {
    if (json.value("num_local_experts", 0) == 0) return;
    const int layers = std::min(json.value("num_hidden_layers", 0), kMaxLayers);
    for (int layer = 0; layer < layers; ++layer) {
      if (tensors_.contains(fmt::format("blk.{}.ffn_gate_inp.weight", layer))) continue;
      json["mlp_only_layers"].push_back(layer);
    }
  }
  void RefuseNotComputed() {
    for (const char* name : kNotComputed) {
      if (metadata_.Find(Key(name)) == nullptr) continue;
      return Keep(Invalid("has {}, which is not supported", Key(name)));
    }
  }

  void Keep(const Status& read) {
    if (status.ok() && !read.ok()) status = read.error();
  }

  Json json = Json::object();
  Status status;

 private:
  // As the file has it: a float, whose shortest decimal form is meant.
  static Json Shortest(double value) {
    return Json::Parse(fmt::format("{}", static_cast<float>(value)));
  }

  void LongRope() {
    Json scaling = {{"type", "longrope"},
                    {"long_factor", Floats(kLongFactors)},
                    {"short_factor", Floats(kShortFactors)}};
    Copy("rope.scaling.original_context_length", "original_max_position_embeddings", &scaling);
    Copy("rope.scaling.attn_factor", "attention_factor", &scaling);
    json["rope_scaling"] = std::move(scaling);
  }

  // A number of each layer: all of them under another name, and the first as if it were that of
  // all. Layers that remember in a state may have 0 for their heads.
  void OfLayers(const GgufArray& array, const std::string& key, const std::string& field) {
    if (array.type == GgufType::kString || array.type == GgufType::kArray) {
      return Keep(InvalidInput(key + " must be a list of whole numbers"));
    }
    for (const double number : array.Numbers()) {
      if (!(number >= 0 && number <= kMaxIntermediate && number == std::floor(number))) {
        return Keep(Invalid("{} has {}, but must have whole numbers from 0 to {}", key, number,
                            kMaxIntermediate));
      }
      json[field + "_of_layers"].push_back(static_cast<std::int64_t>(number));
    }
    if (!json.contains(field + "_of_layers")) return;
    const Json& all = json[field + "_of_layers"];
    const auto first = std::ranges::find_if(all, [](const Json& number) { return number != 0; });
    json[field] = first == all.end() ? all.front() : *first;
  }

  // A number of either kind, as it is in the file.
  void Copy(std::string_view name, const char* field, Json* to) {
    const std::string key = Key(name);
    const GgufValue* found = metadata_.Find(key);
    if (found == nullptr) return;
    if (const auto* whole = std::get_if<std::uint64_t>(found)) {
      (*to)[field] = *whole;
    } else if (const auto* with_sign = std::get_if<std::int64_t>(found)) {
      (*to)[field] = *with_sign;
    } else {
      double value = 0;
      Keep(metadata_.Number(key, &value));
      if (status.ok()) (*to)[field] = Shortest(value);
    }
  }

  std::vector<float> Floats(std::string_view tensor) const {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) return {};
    const TensorView& view = found->second;
    std::vector<float> values(view.elements());
    LoadElements(view, 0, view.elements(), values.data());
    return values;
  }

  const GgufMetadata& metadata_;
  const TensorMap& tensors_;
  std::string architecture_;
};

// The first of those that files call alike, of those that have experts where the file has.
const Family* FamilyOfGguf(std::string_view architecture, bool has_experts) {
  const Family* found = nullptr;
  for (const Family* family : Families()) {
    if (family->gguf.empty() || family->gguf != architecture) continue;
    if (family->gguf_has_experts == has_experts) return family;
    if (found == nullptr) found = family;
  }
  return found;
}

std::string GgufNames() {
  std::set<std::string_view> names;
  for (const Family* family : Families()) {
    if (!family->gguf.empty()) names.insert(family->gguf);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void ReadAll(const TensorMap& tensors, ConfigReader* reader) {
  reader->Needed("embedding_length", "hidden_size");
  reader->Needed("feed_forward_length", "intermediate_size");
  reader->Needed("block_count", "num_hidden_layers");
  reader->LeaveOutPredictionLayers();
  reader->Needed("attention.head_count", "num_attention_heads");
  reader->Needed("context_length", "max_position_embeddings");
  for (const auto& [name, field] : kIntegers) reader->Optional(reader->Key(name), field);
  for (const auto& [name, field] : kFractions) reader->Fraction(name, field);
  reader->Optional("tokenizer.ggml.bos_token_id", "bos_token_id");
  reader->Optional("tokenizer.ggml.eos_token_id", "eos_token_id");
  reader->Rope();
  reader->WindowPattern();
  reader->DenseLayers();
  reader->RefuseNotComputed();
  // As files say that there is none.
  if (reader->json.value("sliding_window", 1) == 0) reader->json.erase("sliding_window");
  const auto has = [&](std::string_view name) { return tensors.find(name) != tensors.end(); };
  reader->json["attention_bias"] = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  reader->json["attention_output_bias"] = has("blk.0.attn_output.bias");
  reader->json["mlp_bias"] = has("blk.0.ffn_up.bias");
  const bool keys_as_values = std::ranges::any_of(tensors, [&](const auto& tensor) {
    constexpr std::string_view kKeys = ".attn_k.weight";
    const std::string& name = tensor.first;
    if (!name.ends_with(kKeys)) return false;
    return !has((name.substr(0, name.size() - kKeys.size()) + ".attn_v.weight").c_str());
  });
  if (keys_as_values) reader->json["attention_k_eq_v"] = true;
  reader->json["use_qkv_bias"] = reader->json["attention_bias"];
  if (has("blk.0.attn_q_norm.weight")) {
    for (const char* name : {"use_qk_norm", "qk_layernorm"}) reader->json[name] = true;
  }
}

}  // namespace

bool IsOfGgufConfig(std::string_view name) {
  // Files of 2023 repeat, for each layer, how it rotates.
  return name == kRopeFactors || name == kLongFactors || name == kShortFactors ||
         name.find(".attn_rot_embd") != std::string_view::npos;
}

Result<std::string> ConfigFromGguf(const GgufMetadata& metadata, const TensorMap& tensors,
                                   std::string_view where) {
  const auto refuse = [where](const Error& error) {
    return Invalid("{}: {}", where, error.message);
  };
  std::string architecture;
  if (const Status read = metadata.String("general.architecture", &architecture); !read.ok()) {
    return refuse(read.error());
  }
  std::int64_t experts = 0;
  const Status counted = metadata.Integer(architecture + ".expert_count", 0, kMaxExperts, &experts);
  if (!counted.ok()) return refuse(counted.error());
  const Family* family = FamilyOfGguf(architecture, experts > 0);
  if (family == nullptr) {
    return refuse(Invalid("is of architecture '{}' (general.architecture), but there are {}",
                          Printable(architecture), GgufNames()));
  }
  const auto embedding = tensors.find("token_embd.weight");
  if (embedding == tensors.end()) return refuse(InvalidInput("lacks tensor token_embd.weight"));
  ConfigReader reader(metadata, tensors, architecture);
  reader.json = {{"model_type", family->name},
                 {"architectures", {family->architecture}},
                 {"vocab_size", embedding->second.shape.front()},
                 {"tie_word_embeddings", tensors.find("output.weight") == tensors.end()}};
  ReadAll(tensors, &reader);
  if (family->gguf_fields != nullptr) family->gguf_fields(metadata, &reader.json);
  if (!reader.status.ok()) return refuse(reader.status.error());
  return reader.json.dump(2);
}

Result<std::string> LayersFromGguf(const GgufMetadata& metadata, const TensorMap& tensors,
                                   const std::string& architecture, const Family& family,
                                   int vocabulary, std::string_view where) {
  ConfigReader reader(metadata, tensors, architecture);
  reader.json = {{"model_type", family.name}, {"tie_word_embeddings", false}};
  if (vocabulary > 0 && metadata.Find(reader.Key("vocab_size")) == nullptr) {
    reader.json["vocab_size"] = vocabulary;
  } else {
    reader.Needed("vocab_size", "vocab_size");
  }
  ReadAll(tensors, &reader);
  if (reader.status.ok()) return reader.json.dump(2);
  return Invalid("{}: {}", where, reader.status.error().message);
}

}  // namespace foretoken
