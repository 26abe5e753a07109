#include "core/model/drafters/prediction_layer.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "core/backend/taps.h"
#include "core/model/drafters/drafter_names.h"
#include "core/model/drafters/shared_tables.h"
#include "core/model/families/family.h"
#include "core/model/model_weights.h"

namespace foretoken {
namespace {

constexpr const char* kName = "a layer that guesses further tokens";

constexpr DrafterTensor kQwenTensors[] = {
    {"feature.join", "fc", "nextn.eh_proj"},
    {"feature.token_norm", "pre_fc_norm_embedding", "nextn.enorm"},
    {"feature.norm", "pre_fc_norm_hidden", "nextn.hnorm"},
    {"output_norm", "norm", "nextn.shared_head_norm"},
    {"embedding", "", "nextn.embed_tokens"},
    {"head", "", "nextn.shared_head_head"}};
// Tables are mostly copies of the model's.
constexpr DrafterTensor kDeepseekTensors[] = {
    {"feature.join", "eh_proj", "nextn.eh_proj"},
    {"feature.token_norm", "enorm", "nextn.enorm"},
    {"feature.norm", "hnorm", "nextn.hnorm"},
    {"output_norm", "shared_head.norm", "nextn.shared_head_norm"},
    {"embedding", "embed_tokens", "nextn.embed_tokens"},
    {"head", "shared_head.head", "nextn.shared_head_head"}};

constexpr DrafterTensor kMimoTensors[] = {
    {"feature.join", "input_proj", "nextn.eh_proj"},
    {"feature.token_norm", "token_layernorm", "nextn.enorm"},
    {"feature.norm", "hidden_layernorm", "nextn.hnorm"},
    {"output_norm", "final_layernorm", "nextn.shared_head_norm"}};

// Where the files of some families have the layer, and how they call what it has beside an
// ordinary one. In GGUF files it lies behind the model's layers and is numbered as they are.
struct Form {
  std::span<const DrafterTensor> tensors;
  std::string_view prefix;  ///< Before all of a folder's names.
  /// The prefix goes on with a number: of all of the model's layers, or of these that guess.
  enum class Number { kNone, kOfAll, kOfGuessing };
  Number number = Number::kNone;
  bool feature_first = false;  ///< The projection has the state's half first.
};
constexpr Form kQwenForm = {.tensors = kQwenTensors, .prefix = "mtp."};
constexpr Form kDeepseekForm = {
    .tensors = kDeepseekTensors, .prefix = "model.layers.", .number = Form::Number::kOfAll};
constexpr Form kMimoForm = {.tensors = kMimoTensors,
                            .prefix = "model.mtp_layers.",
                            .number = Form::Number::kOfGuessing,
                            .feature_first = true};
constexpr Form kForms[] = {kQwenForm, kDeepseekForm, kMimoForm};

// Null where layers of such models are not supported. GGUF files call both of DeepSeek's alike.
const Form* FormOf(std::string_view family) {
  const auto is_any = [family](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, family) != names.end();
  };
  if (family == kMimo.name) return &kMimoForm;
  if (is_any({kDeepseekV2.name, kDeepseekV3.name, kGlm4Moe.name})) return &kDeepseekForm;
  return is_any({kQwen3Next.name, kQwen35.name, kQwen35Moe.name}) ? &kQwenForm : nullptr;
}

// What the names of a layer's tensors begin with, where `name` is that of its projection; else
// empty.
std::string FormPrefix(const Form& form, bool gguf, std::string_view name) {
  const DrafterTensor& join = form.tensors.front();
  const std::string end = fmt::format("{}.weight", gguf ? join.gguf : join.folder);
  if (!name.ends_with(end)) return {};
  name.remove_suffix(end.size());
  const std::string_view begin = gguf ? "blk." : form.prefix;
  if (!name.starts_with(begin)) return {};
  const bool numbered = gguf || form.number != Form::Number::kNone;
  return numbered || name == begin ? std::string(name) : "";
}

// The prefixes of all layers that guess further tokens, whatever family's.
std::vector<std::string> PrefixesOf(const Checkpoint& model) {
  const bool gguf = model.gguf.has_value();
  std::vector<std::string> prefixes;
  for (const auto& [name, tensor] : model.tensors) {
    for (const Form& form : kForms) {
      const std::string prefix = FormPrefix(form, gguf, name);
      if (prefix.empty()) continue;
      prefixes.push_back(prefix);
      break;
    }
  }
  return prefixes;
}

}  // namespace

Result<ModelConfig> PredictionLayerOf(const ModelConfig& model, const std::string& where) {
  const auto layer = std::find_if(model.layers.rbegin(), model.layers.rend(),
                                  [](const LayerSpec& each) { return !each.is_recurrent(); });
  if (layer == model.layers.rend()) {
    return Invalid(
        "{}: no layer of the model has attention, as that which guesses further tokens must",
        where);
  }
  ModelConfig config = model;
  config.layers = {*layer};
  config.tied_embeddings = false;
  config.feature = {.join = FeatureSpec::Join::kProjected,
                    .points = {TapShape::kFinalState},
                    .tapped = model.hidden,
                    .normed = true,
                    .leaves_normed = true};
  return config;
}

bool HasPredictionLayer(const Checkpoint& model) { return !PrefixesOf(model).empty(); }

Result<LearnedDraft> ReadPredictionLayer(Checkpoint model, const Checkpoint& target,
                                         const ModelConfig& target_config) {
  const std::string path = model.path.string();
  const std::vector<std::string> found = PrefixesOf(model);
  if (found.empty()) {
    return Invalid(
        "{}: has no layer that guesses further tokens: tensors mtp.* of a folder or those of a "
        "layer behind its own, blk.N.nextn.* of a GGUF file",
        path);
  }
  const Form* form = FormOf(target_config.family);
  if (form == nullptr) {
    return Invalid(
        "{}: has a layer that guesses further tokens, which of {} models is not supported", path,
        target_config.family);
  }
  const bool gguf = model.gguf.has_value();
  const bool one_layer = gguf || form->number != Form::Number::kNone;
  const bool of_guessing = !gguf && form->number == Form::Number::kOfGuessing;
  const int number = of_guessing ? 0 : target_config.layer_count();
  const std::string prefix = one_layer ? fmt::format("{}{}.", gguf ? "blk." : form->prefix, number)
                                       : std::string(form->prefix);
  if (std::ranges::find(found, prefix) == found.end()) {
    return Invalid(
        "{}: the layer that guesses further tokens is {}*, but that of a target of {} layers is "
        "{}*",
        path, Printable(found.front()), target_config.layer_count(), prefix);
  }
  LearnedDraft draft;
  FT_ASSIGN_OR_RETURN(draft.config, PredictionLayerOf(target_config, path));
  draft.config.architecture = kName;
  draft.config.feature.feature_first = form->feature_first;
  if (found.size() > 1) {
    draft.notes.push_back(fmt::format(
        "the model has {} layers that guess further tokens: the first of them drafts all tokens",
        found.size()));
  }
  const auto of_model = [&](const auto& tensor) { return !tensor.first.starts_with(prefix); };
  std::erase_if(model.tensors, of_model);
  std::erase_if(model.others, of_model);
  std::erase_if(model.arranged, of_model);
  const Family& family = *FamilyNamed(draft.config.family);
  FT_RETURN_IF_ERROR(NameTensors({.kind = kName,
                                  .tensors = form->tensors,
                                  .family = &family,
                                  .prefix = prefix,
                                  .gguf = gguf,
                                  .one_layer = one_layer},
                                 &model));
  model.gains_less_one = !gguf && family.folder_gains_less_one;
  if (!gguf && family.arrange != nullptr) FT_RETURN_IF_ERROR(family.arrange(&model));
  FT_RETURN_IF_ERROR(ShareTables(target, target_config, draft.config, &model));
  FT_RETURN_IF_ERROR(CheckWeights(model, draft.config));
  draft.checkpoint = std::move(model);
  return draft;
}

Result<LearnedDraft> OpenPredictionLayer(const std::filesystem::path& path,
                                         const Checkpoint& target,
                                         const ModelConfig& target_config) {
  FT_ASSIGN_OR_RETURN(Checkpoint model, Checkpoint::Open(path));
  return ReadPredictionLayer(std::move(model), target, target_config);
}

}  // namespace foretoken
