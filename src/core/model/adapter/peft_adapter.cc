#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "base/text/text.h"
#include "core/model/adapter/factor_pairs.h"
#include "core/model/config/config_fields.h"
#include "json/read_json_object.h"

// PEFT's LoraConfig (peft/tuners/lora/config.py) says what of an adapter's configuration changes
// what is computed.

namespace foretoken {
namespace {

constexpr double kMostAlpha = 1e6;
constexpr int kMostRank = 1 << 16;

/// Numbers by names of modules, such as "q_proj" or "model.layers.0.mlp.up_proj".
struct Pattern {
  std::string module;
  double value = 0;

  bool Matches(std::string_view name) const {
    if (!name.ends_with(module)) return false;
    return name.size() == module.size() || name[name.size() - module.size() - 1] == '.';
  }
};

class PeftConfig {
 public:
  static Result<PeftConfig> Parse(std::string_view text, std::string_view where) {
    FT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text, where));
    Status status;
    ConfigFields fields(&json, std::string(where), &status);
    PeftConfig config;
    config.where_ = where;
    std::string type = "LORA";
    if (fields.String("peft_type", &type) && type != "LORA") {
      fields.Refuse("peft_type is '{}', but only LORA is supported", Printable(type));
    }
    RefuseOthers(&fields);
    fields.Int("r", 1, kMostRank, &config.rank_);
    fields.Number("lora_alpha", -kMostAlpha, kMostAlpha, &config.alpha_);
    fields.Bool("use_rslora", &config.by_root_);
    config.ranks_ = Patterns(&fields, "rank_pattern", 1, kMostRank);
    config.alphas_ = Patterns(&fields, "alpha_pattern", -kMostAlpha, kMostAlpha);
    FT_RETURN_IF_ERROR(status);
    return config;
  }

  /// What a module's factors are multiplied by.
  Result<double> ScaleOf(std::string_view module, std::int64_t rank) const {
    FT_ASSIGN_OR_RETURN(const double expected, ValueFor("rank_pattern", ranks_, module, rank_));
    if (expected != static_cast<double>(rank)) {
      return Invalid("{}: says rank {} for {}, but its factors are of rank {}", where_, expected,
                     Printable(module), rank);
    }
    FT_ASSIGN_OR_RETURN(const double alpha, ValueFor("alpha_pattern", alphas_, module, alpha_));
    return alpha / (by_root_ ? std::sqrt(expected) : expected);
  }

 private:
  // What would change the model in a way that factors alone do not.
  static void RefuseOthers(ConfigFields* fields) {
    for (const char* name : {"use_dora", "fan_in_fan_out", "lora_bias", "use_qalora"}) {
      bool used = false;
      if (fields->Bool(name, &used) && used) {
        fields->Refuse("{} is set, but only plain LoRA is supported", name);
      }
    }
    std::string bias = "none";
    if (fields->String("bias", &bias) && bias != "none") {
      fields->Refuse(
          "bias is '{}', but adapters that change biases are not supported: it must be 'none'",
          Printable(bias));
    }
    for (const char* name : {"modules_to_save", "layer_replication", "trainable_token_indices",
                             "target_parameters", "alora_invocation_tokens", "use_bdlora",
                             "arrow_config", "kasa_config", "velora_config", "monteclora_config"}) {
      const Json* value = fields->Find(name);
      if (value == nullptr || value->empty() || *value == false) continue;
      fields->Refuse("has {}, but only plain LoRA is supported", name);
    }
    // Some ways to begin change the weights of the model too.
    const Json* start = fields->Find("init_lora_weights");
    if (start == nullptr || start->is_boolean()) return;
    for (const char* plain : {"gaussian", "eva", "orthogonal"}) {
      if (*start == plain) return;
    }
    fields->Refuse(
        "init_lora_weights is {}, which changes the model's own weights too: save the adapter "
        "converted to plain LoRA",
        Printable(start->dump()));
  }

  static std::vector<Pattern> Patterns(ConfigFields* fields, const char* name, double low,
                                       double high) {
    std::vector<Pattern> patterns;
    const Json* object = fields->Find(name);
    if (object == nullptr) return patterns;
    if (!object->is_object()) {
      fields->Refuse("{} must be an object of numbers by names of modules", name);
      return patterns;
    }
    for (const auto& [key, value] : object->items()) {
      std::string module = ReplaceAll(key, "\\.", ".");
      if (module.starts_with('^')) module.erase(0, 1);
      if (module.ends_with('$')) module.pop_back();
      const bool plain = !module.empty() && std::ranges::all_of(module, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
      });
      if (!plain) {
        fields->Refuse("{} has '{}', but only names of modules are supported", name,
                       Printable(key));
      } else if (!value.is_number() || !(value.get<double>() >= low) ||
                 !(value.get<double>() <= high)) {
        fields->Refuse("{} gives {} for '{}', which is no number from {} to {}", name,
                       Printable(value.dump()), module, low, high);
      } else {
        patterns.push_back({std::move(module), value.get<double>()});
      }
    }
    return patterns;
  }

  Result<double> ValueFor(const char* name, const std::vector<Pattern>& patterns,
                          std::string_view module, double otherwise) const {
    const Pattern* found = nullptr;
    for (const Pattern& pattern : patterns) {
      if (!pattern.Matches(module)) continue;
      if (found != nullptr && found->value != pattern.value) {
        return Invalid("{}: {} gives both {} and {} for {}", where_, name, found->value,
                       pattern.value, Printable(module));
      }
      found = &pattern;
    }
    return found == nullptr ? otherwise : found->value;
  }

  std::string where_;
  int rank_ = 8;
  double alpha_ = 8;
  bool by_root_ = false;  // Alpha is divided by the root of the rank.
  std::vector<Pattern> ranks_;
  std::vector<Pattern> alphas_;
};

// "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight" is A for
// "model.layers.0.mlp.up_proj".
FactorName ReadPeftName(std::string_view name) {
  constexpr std::string_view kPrefix = "base_model.model.";
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  for (const bool down : {true, false}) {
    const std::string_view ending = down ? ".lora_A.weight" : ".lora_B.weight";
    if (!name.ends_with(ending)) continue;
    return {std::string(name.substr(0, name.size() - ending.size())), down};
  }
  return {};
}

}  // namespace

Result<AdapterFile> PeftAdapter(const TensorMap& tensors, std::string_view config,
                                std::string_view where, const Family& family) {
  FT_ASSIGN_OR_RETURN(const PeftConfig read, PeftConfig::Parse(config, where));
  return PairFactors(
      tensors, where, family, /*gguf=*/false, ReadPeftName,
      [&read](std::string_view module, std::int64_t rank) { return read.ScaleOf(module, rank); });
}

}  // namespace foretoken
