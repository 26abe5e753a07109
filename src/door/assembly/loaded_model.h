#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/backend/device.h"
#include "core/draft/text/text_link.h"
#include "core/model/adapter/adapter_set.h"
#include "core/model/model.h"
#include "core/model/model_weights.h"
#include "core/model/translated_model.h"
#include "core/ssd/hello.h"
#include "core/weights/checkpoint.h"
#include "foretoken/mode.h"
#include "foretoken/model.h"
#include "text/grammar/tokens/constraint_compiler.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// What a source holds, checked and ready to be packed. A synthetic one has neither checkpoint nor
/// tokenizer.
struct OpenedModel {
  ModelConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<Checkpoint> checkpoint;
  ModelIdentity identity;  ///< What both sides of a speculator's channel must have loaded.
  /// For a draft whose tokens are not its target's; else null. The tokenizer is then the target's,
  /// and `config` still the model's own.
  std::shared_ptr<const Translation> translation;
  /// For a draft that drafts by text, whose tokens and tokenizer stay its own; else null.
  std::shared_ptr<const TextLink> text;
  std::vector<Adapter> adapters;  ///< Adapters that its sequences may be computed with.
  ExpertsPlace experts = ExpertsPlace::kMemory;
  DraftVocabulary draft_vocabulary;  ///< FitDraft makes it so.
  /// The model of this identity has the same weights, all of them or more (SharedWeights); none:
  /// nobody's are known to be the same.
  std::optional<ModelIdentity> weights_of = {};
};

/// A fingerprint of a ModelIdentity as text.
std::string FingerprintText(const std::array<char, 64>& fingerprint);
/// The identity of that model changed in a way that `change` names; its tokenizer is the same.
ModelIdentity Changed(const ModelIdentity& model, std::string_view change);

/// What of the model's files is not used, in sentences: parts beside the text model
/// (Checkpoint::not_used), tokens that no text is made of.
std::vector<std::string> NotUsed(const OpenedModel& opened);

/// Checks that configuration, tokenizer and tensors are there and go together. Of a draft that is
/// the model itself without some sub-layers (IsSelfDraft), opens that.
Result<OpenedModel> OpenModel(const ModelSource& source);

/// Weights that were packed last, while somebody uses them: who needs the same need not pack them.
struct PackedWeights {
  ModelIdentity identity;
  Precision precision = Precision::kBF16;
  std::weak_ptr<const ModelWeights> weights;
};

/// A model with the device it runs on. Tokenizer and constraints are null for synthetic models.
struct LoadedModel {
  std::shared_ptr<Device> device;
  std::unique_ptr<Backend> backend;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ModelWeights> weights;
  std::shared_ptr<const AdapterSet> adapters;     ///< Null: there are none.
  std::vector<std::string> adapter_fingerprints;  ///< Adapter::fingerprint of each.
  std::unique_ptr<Model> model;
  std::unique_ptr<ConstraintCompiler> constraints;  ///< Grammars over the tokenizer's vocabulary.
  ModelIdentity identity;
  std::shared_ptr<const Translation> translation;  ///< As in OpenedModel: `model` is translated.
  std::shared_ptr<const TextLink> text;            ///< As in OpenedModel.
  /// Where its files lie; empty for synthetic models.
  std::string path;
  ExpertsPlace experts = ExpertsPlace::kMemory;
  std::vector<std::string> not_used;  ///< NotUsed.
  /// Weights of the drafts of its engines, also on other devices.
  std::shared_ptr<ByDrafter<PackedWeights>> draft_weights =
      std::make_shared<ByDrafter<PackedWeights>>();
};

/// What is asked for, or else suits the model: kPortable where some of its weights are quantised,
/// else kBF16, and the KV that is usual with that.
Numerics NumericsFor(const OpenedModel& opened, std::optional<Precision> precision,
                     std::optional<KvFormat> kv);

/// The weights of `loaded` for a draft that is made of them, in the same memory. Null where it is
/// not, or where the draft computes with another precision.
std::shared_ptr<const ModelWeights> SharedWeights(const OpenedModel& draft, Precision precision,
                                                  const LoadedModel& loaded);

/// Packs the weights of a model, unless they are the `packed` ones, and makes it ready to run on
/// `device`. `packed`, which may be null, then has them. Refuses weights that are infinite or NaN.
Result<std::unique_ptr<LoadedModel>> LoadModel(const OpenedModel& opened,
                                               std::shared_ptr<Device> device, Numerics numerics,
                                               PackedWeights* packed = nullptr,
                                               const LoadProgress& progress = {});

/// Opens and loads, with adapters.
Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source,
                                               std::shared_ptr<Device> device,
                                               std::optional<Precision> precision,
                                               std::optional<KvFormat> kv = {},
                                               const LoadProgress& progress = {},
                                               std::span<const AdapterSource> adapters = {});

/// The same weights on another device; nothing is packed again.
std::unique_ptr<LoadedModel> OnDevice(const LoadedModel& loaded, std::shared_ptr<Device> device);

}  // namespace foretoken
