#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "base/text/printable.h"
#include "core/model/drafters/drafter_kind.h"
#include "core/model/families/family.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr std::string_view kEagle3Flags[] = {
    "attention_bias", "embed_requires_grad", "fc_norm",
    "mlp_bias",       "norm_before_fc",      "norm_before_residual",
    "norm_output",    "tie_word_embeddings", "use_cache"};

constexpr std::string_view kEagle3Families[] = {"llama", "qwen3"};

constexpr std::string_view kUsualParts[] = {"use_aux_hidden_state",
                                            "use_input_layernorm_in_first_layer",
                                            "use_last_layernorm", "next_layer_regular"};

constexpr DrafterTensor kEagle3Tensors[] = {
    {"embedding", "embed_tokens", "token_embd"},
    {"head", "lm_head", "output"},
    {"output_norm", "norm", "output_norm"},
    {"feature.reduction", "fc", "fc"},
    {"feature.tap_norm", "input_norm"},
    {"feature.tap_norm.*", "fc_norm.*"},
    {"feature.token_norm", "layers.0.input_layernorm", "blk.0.attn_norm"},
    {"feature.norm", "layers.0.hidden_norm", "blk.0.attn_norm_2"},
    {"feature.mask", "mask_hidden"}};  // P-EAGLE's only.

// What NVIDIA's say besides, all of which is as EAGLE's authors have it.
void CheckVariant(ConfigFields& fields) {
  ConfigFields eagle = fields.Within("eagle_config");
  for (const std::string_view part : kUsualParts) {
    bool there = true;
    eagle.Bool(part, &there);
    if (!there) {
      eagle.Refuse("{} is false, but only drafters with it are supported", part);
    }
  }
  if (const Json* json = fields.Find("eagle_config")) {
    RefuseUnknownFlags(*json, kUsualParts, &eagle);
  }
  if (eagle.IntOr("parallel_draft_step", 1, kMaxPositions, 1) > 1) {
    eagle.Refuse(
        "parallel_draft_step is above 1, but only drafts of one token a pass are supported");
  }
}

// The layers of which the target's stream is read as it enters them. SpecForge and NVIDIA number
// them by their outputs, in an object of their own.
std::vector<int> ReadEagle3Points(ConfigFields& fields, const ModelConfig& target,
                                  std::vector<std::string>* notes) {
  constexpr const char* kPoints = "eagle_aux_hidden_state_layer_ids";
  const int layers = target.layer_count();
  ConfigFields eagle = fields.Within("eagle_config");
  std::vector<int> points;
  if (eagle.Has(kPoints)) {
    points = eagle.Integers(kPoints, kMaxPoints, 0, layers - 1);
    for (int& point : points) ++point;
  } else if (fields.Has(kPoints)) {
    points = fields.Integers(kPoints, kMaxPoints, 0, layers);
  }
  if (!points.empty() || !fields.ok()) return points;
  if (layers < 6) {
    fields.Refuse("lacks {}, and a target of {} layers is too small for the usual ones", kPoints,
                  layers);
    return {};
  }
  points = {2, layers / 2, layers - 3};
  notes->push_back(fmt::format(
      "the drafter does not say which layers of its target it reads: what enters {} is taken, as "
      "EAGLE's authors do; where it was trained on others, few drafts will be accepted",
      fmt::join(points, ", ")));
  return points;
}

Result<ModelConfig> LayersOfSpeculators(const Json& json, const std::string& where) {
  Status status;
  ConfigFields fields(&json, where, &status);
  std::string kind;
  fields.String("speculators_model_type", &kind);
  if (kind != "eagle3" && kind != "peagle") {
    fields.Refuse(
        "speculators_model_type is {}, but only eagle3, peagle, mtp, dflash and dspark are "
        "supported",
        Printable(kind));
  }
  FT_RETURN_IF_ERROR(status);
  FT_ASSIGN_OR_RETURN(ModelConfig config, DescribeLayersWithin(json, where, kEagle3Families));
  ConfigFields layers = fields.Within("transformer_layer_config");
  const std::vector<bool> sliding =
      SlidingLayers(layers, config.layer_count(), [](int /*layer*/) { return false; });
  if (std::ranges::find(sliding, true) != sliding.end()) {
    layers.Refuse("layer_types has sliding_attention, which drafters have no support for");
  }
  FT_RETURN_IF_ERROR(status);
  return config;
}

// The flags of EAGLE-3.1 and of speculators, and where they are read.
void ReadFlags(ConfigFields& fields, bool speculators, FeatureSpec* feature) {
  if (fields.BoolOr("fc_norm", false)) feature->tap_norm = FeatureSpec::TapNorm::kEachPoint;
  if (fields.BoolOr("norm_before_fc", false)) {
    if (feature->tap_norm != FeatureSpec::TapNorm::kNone) {
      fields.Refuse("has both fc_norm and norm_before_fc, which exclude each other");
    }
    feature->tap_norm = FeatureSpec::TapNorm::kAll;
  }
  feature->normed_stream = fields.BoolOr("norm_before_residual", false);
  // One name for two things: what a row leaves is normalised; or there is a norm before the head.
  if (speculators) {
    feature->leaves_normed = fields.BoolOr("norm_output", false);
  } else {
    feature->output_norm = fields.BoolOr("norm_output", true);
  }
}

Result<ModelConfig> DescribeEagle3(const Json& json, const std::string& where,
                                   const ModelConfig& target, std::vector<std::string>* notes) {
  Status status;
  ConfigFields fields(&json, where, &status);
  const bool speculators = fields.Has("speculators_model_type");
  RefuseUnknownFlags(json, kEagle3Flags, &fields);
  FT_RETURN_IF_ERROR(status);
  FT_ASSIGN_OR_RETURN(ModelConfig config, speculators ? LayersOfSpeculators(json, where)
                                                      : DescribeLayers(json, where, "llama"));
  const int made_for = fields.IntOr("target_hidden_size", 1, kMaxHidden, config.hidden);
  if (made_for != target.hidden) {
    fields.Refuse("is for a target whose hidden_size is {}, but this one's is {}", made_for,
                  target.hidden);
  }
  FeatureSpec& feature = config.feature;
  feature = {.join = FeatureSpec::Join::kAttended,
             .points = ReadEagle3Points(fields, target, notes),
             .tapped = target.hidden,
             .reduced = true,
             .first_norm = false};
  CheckVariant(fields);
  ReadFlags(fields, speculators, &feature);
  config.vocabulary = fields.IntOr("draft_vocab_size", 1, kMaxVocabulary, config.vocabulary);
  FT_RETURN_IF_ERROR(status);
  return config;
}

// The same network, whose rows of masks say the positions behind the last token.
Result<ModelConfig> DescribeParallel(const Json& json, const std::string& where,
                                     const ModelConfig& target, std::vector<std::string>* notes) {
  FT_ASSIGN_OR_RETURN(ModelConfig config, DescribeEagle3(json, where, target, notes));
  Status status;
  ConfigFields fields(&json, where, &status);
  config.parallel = {.positions = kMaxProposal,
                     .mask_token = fields.Integer("mask_token_id", 0, config.embedded - 1)};
  FT_RETURN_IF_ERROR(status);
  config.feature.masked = true;
  return config;
}

}  // namespace

const DrafterKind kPeagle = {
    .name = "a P-EAGLE drafter", .tensors = kEagle3Tensors, .describe = DescribeParallel};

const DrafterKind kEagle3 = {
    .name = "an EAGLE-3 drafter",
    .tensors = std::span(kEagle3Tensors).first(std::size(kEagle3Tensors) - 1),
    .describe = DescribeEagle3};

}  // namespace foretoken
