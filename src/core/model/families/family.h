#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config/config_fields.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"
#include "core/weights/gguf/gguf_header.h"
#include "core/weights/gguf/gguf_metadata.h"

namespace foretoken {

/// One tensor's name: ours, that of Hugging Face's folders and that of GGUF files, each without
/// ".weight" or ".bias", or all three as they end. Those of a layer are what follows "layers.3.",
/// "model.layers.3." and "blk.3."; others are whole. A '*' is a number, of an expert say. Files of
/// a kind whose name is empty do not have the tensor.
struct TensorName {
  std::string_view ours;
  std::string_view folder;
  std::string_view gguf;
};

/// Where rotated pairs are neighbours, number 2i with 2i + 1; elsewhere number i is rotated with
/// i + dims / 2.
enum class Neighbours { kNever, kInGguf, kAlways };

/// Models that are described alike. A family is a file of this folder.
struct Family {
  std::string_view name;              ///< As config.json's model_type has it.
  std::string_view architecture;      ///< As `architectures` has it.
  std::string_view gguf;              ///< As general.architecture has it.
  std::span<const TensorName> names;  ///< Where they differ from the usual ones.
  Neighbours neighbours = Neighbours::kNever;
  bool folder_gains_less_one = false;  ///< Folders hold the gains of norms less one.
  bool gguf_has_experts = false;       ///< What tells it from another that GGUF files call alike.
  /// What the class in `transformers` reads in config.json beside what most classes do, as JSON:
  /// each field as it is where a folder leaves it out; null: it is None, or it has another name
  /// besides, which has the default and counts less than this one.
  std::string_view fields = "{}";
  /// The same of all its relatives; what `fields` has besides counts before it.
  std::string_view relatives_fields = "{}";
  /// What the family has that DescribeUsual does not say; null: nothing.
  void (*describe)(ConfigFields& fields, ModelConfig* config) = nullptr;
  /// Fields of config.json that GGUF files say in a way of the family's own; null: none.
  void (*gguf_fields)(const GgufMetadata& metadata, Json* config) = nullptr;
  /// The other way round: keys of the family's own that a GGUF file of a model has, beside those of
  /// all models (door/convert/gguf_keys.h); null: none.
  void (*gguf_keys)(const ModelConfig& config, GgufHeader* header) = nullptr;
  /// Tensors of a folder that GGUF files have in another form, arranged as they are there, under
  /// our names for those. Null: there are none. A tensor that is missing or of another shape than
  /// the description's stays as it is, and so does one that is arranged already.
  void (*arrange_for_gguf)(Checkpoint* checkpoint, const ModelConfig& config) = nullptr;
  /// Folders are read in that form, too: sums along what lies in another order there would have
  /// other bits than those of a file.
  bool reads_as_gguf = false;
  /// Tensors that folders keep in an order of the family's own become what they are elsewhere when
  /// they are read; null: none do. They have their names already.
  Status (*arrange)(Checkpoint* checkpoint) = nullptr;
};

/// All that there are.
std::span<const Family* const> Families();
/// nullptr where there is none of that name.
const Family* FamilyNamed(std::string_view name);

/// Reads what nearly all families call by the same names and makes all layers alike: sizes, the
/// rotation, biases, a window, the tokens that begin and end texts.
/// The model is used for `context` positions at most, 0: for all that it was made for.
void DescribeUsual(ConfigFields& fields, int context, ModelConfig* config);

/// The names of `family`'s tensors. A tensor that it does not have is "".
std::string OurName(const Family& family, bool gguf, std::string_view name_in_file);
std::string NameInFile(const Family& family, bool gguf, std::string_view our_name);

// What several families say alike.

/// Which layers see a window only: those whose `layer_types` is "sliding_attention", or without
/// that field those that `otherwise(layer)` says.
std::vector<bool> SlidingLayers(ConfigFields& fields, int layers,
                                const std::function<bool(int layer)>& otherwise);
/// These see `window` positions, the others all.
void SetWindows(const std::vector<bool>& sliding, int window, ModelConfig* config);

/// The layers that `sparse` says have experts of `intermediate` each, so many and so many chosen as
/// num_experts (or num_local_experts, n_routed_experts) and num_experts_per_tok say; the rest of
/// `routing` is as it is given.
void SetExperts(ConfigFields& fields, Routing routing, int intermediate,
                const std::function<bool(int layer)>& sparse, ModelConfig* config);
/// Gives layers that have experts a shared one, too.
void SetShared(int intermediate, bool gate, ModelConfig* config);
/// SetExperts as Qwen's families say it: on layers that are not named and fall in the step. What
/// experts weigh is `normalised` unless norm_topk_prob says otherwise.
void SetQwenExperts(ConfigFields& fields, bool normalised, ModelConfig* config);

// Each family, in a file of its own or with its relatives.
extern const Family kLlama;
extern const Family kMistral;
extern const Family kMinistral3;
extern const Family kQwen2;
extern const Family kMimo;
extern const Family kQwen3;
extern const Family kGemma2;
extern const Family kGemma3;
extern const Family kGemma4;
extern const Family kPhi3;
extern const Family kSmolLm3;
extern const Family kOlmo2;
extern const Family kGranite;
extern const Family kGlm;
extern const Family kGlm4;
extern const Family kGlm4Moe;
extern const Family kCohere;
extern const Family kCohere2;
extern const Family kStableLm;
extern const Family kMixtral;
extern const Family kQwen2Moe;
extern const Family kQwen3Moe;
extern const Family kOlmoe;
extern const Family kGraniteMoe;
extern const Family kGraniteMoeShared;
extern const Family kGraniteHybrid;
extern const Family kGptOss;
extern const Family kDeepseekV2;
extern const Family kDeepseekV3;
extern const Family kQwen3Next;
extern const Family kQwen35;
extern const Family kQwen35Moe;

}  // namespace foretoken
