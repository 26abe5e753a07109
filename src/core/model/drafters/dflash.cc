#include <algorithm>
#include <string>
#include <vector>

#include "base/text/printable.h"
#include "core/model/drafters/drafter_kind.h"
#include "core/model/families/family.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr std::string_view kDflashFamilies[] = {"qwen3"};

constexpr std::string_view kDflashFlags[] = {
    "attention_bias",     "confidence_head_with_markov", "enable_confidence_head", "is_causal",
    "sample_from_anchor", "sliding_window_non_causal",   "tie_word_embeddings",    "use_cache",
    "use_sliding_window"};
constexpr std::string_view kOwnFlags[] = {"causal", "confidence_head_with_markov",
                                          "enable_confidence_head"};
constexpr int kMaxRank = 1 << 14;

// The tensors of DFlash, then what DSpark has beside them.
constexpr DrafterTensor kDflashTensors[] = {
    {"embedding", "embed_tokens", "token_embd"},
    {"head", "lm_head", "output"},
    {"output_norm", "norm", "output_norm"},
    {"feature.reduction", "fc", "fc"},
    {"feature.norm", "hidden_norm", "enc.output_norm"},
    {"markov.tokens", "markov_head.markov_w1", "markov_w1"},
    {"markov.output", "markov_head.markov_w2", "markov_w2"},
    {"markov.gate", "markov_head.gate_proj"},
    {"markov.cell", "markov_head.joint_proj"},
    {"markov.confidence", "confidence_head.proj", "conf_proj"}};
constexpr std::size_t kOfDflash = 5;

// What its authors keep in an object of its own, or beside it; `speculators` and the authors of
// DSpark only beside it.
class DflashFields {
 public:
  DflashFields(const Json& json, const std::string& where, bool dspark, Status* status)
      : all_(&json, where, status), own_(all_.Within("dflash_config")) {
    RefuseUnknownFlags(json, kDflashFlags, &all_);
    if (const Json* own = all_.Find("dflash_config")) RefuseUnknownFlags(*own, kOwnFlags, &own_);
    for (const char* other : {"selector_rank", "conv_kernel_size", "markov_rank"}) {
      const bool known = dspark && other == std::string_view("markov_rank");
      if (At(other).Has(other) && !known) {
        At(other).Refuse("has {}, which only drafters of a later kind have", other);
      }
    }
    const char* const wanted = dspark ? "dspark" : "dflash";
    std::string projector = wanted;
    At("projector_type").String("projector_type", &projector);
    if (projector != wanted) {
      all_.Refuse("projector_type is '{}', but only dflash and dspark are supported",
                  Printable(projector));
    }
  }

  ConfigFields& all() { return all_; }
  bool speculators() { return all_.Has("speculators_model_type"); }
  ConfigFields& At(const char* name) { return own_.Has(name) ? own_ : all_; }
  bool Flag(const char* name, bool otherwise) { return At(name).BoolOr(name, otherwise); }

 private:
  ConfigFields all_;
  ConfigFields own_;
};

// The layers by whose outputs its authors name what is read; `speculators` by what enters them.
// -1 stands for the embeddings.
std::vector<int> ReadDflashPoints(DflashFields& fields, const ModelConfig& target) {
  const int layers = target.layer_count();
  const int made_for = fields.all().IntOr("num_target_layers", 1, kMaxLayers, layers);
  if (made_for != layers) {
    fields.all().Refuse("is for a target of {} layers, but this one has {}", made_for, layers);
  }
  const bool entered = fields.speculators();
  const char* const name = entered ? "aux_hidden_state_layer_ids" : "target_layer_ids";
  ConfigFields& at = fields.At(name);
  std::vector<int> points;
  if (at.Has(name)) {
    points = at.Integers(name, kMaxPoints, entered ? 0 : -1, entered ? layers : layers - 1);
  }
  if (points.empty()) at.Refuse("lacks {}, the layers that it reads", name);
  if (!entered) {
    for (int& point : points) ++point;
  }
  return points;
}

ParallelSpec ReadBlock(DflashFields& fields, int vocabulary, bool from_last) {
  ParallelSpec block;
  ConfigFields& size = fields.At("block_size");
  block.block = size.Integer("block_size", 2, kMaxProposal + 1);
  block.in_place = !fields.all().BoolOr("sample_from_anchor", from_last);
  block.positions = block.block - (block.in_place ? 1 : 0);
  block.mask_token = fields.At("mask_token_id").Integer("mask_token_id", 0, vocabulary - 1);
  return block;
}

// What DSpark has beside DFlash. What `speculators` leave out is there, as in their class.
MarkovSpec ReadMarkov(DflashFields& fields, const ParallelSpec& block) {
  const bool otherwise = fields.speculators();
  MarkovSpec markov;
  markov.rank = fields.At("markov_rank").IntOr("markov_rank", 0, kMaxRank, otherwise ? 256 : 0);
  std::string kind = "vanilla";
  ConfigFields& at = fields.At("markov_head_type");
  at.String("markov_head_type", &kind);
  if (kind == "gated") {
    markov.kind = MarkovSpec::Kind::kGated;
  } else if (kind == "rnn") {
    markov.kind = MarkovSpec::Kind::kRecurrent;
  } else if (kind != "vanilla") {
    at.Refuse("markov_head_type is '{}', but only vanilla, gated and rnn are supported",
              Printable(kind));
  }
  if (markov.rank == 0) markov.kind = MarkovSpec::Kind::kVanilla;
  if (markov.kind == MarkovSpec::Kind::kRecurrent && block.in_place) {
    fields.all().Refuse(
        "has a Markov head of the kind rnn that begins before the first token that is drafted, "
        "which is not supported: sample_from_anchor would have to be true");
  }
  ConfigFields& weight = fields.At("confidence_head_alpha");
  const bool trained = weight.NumberOr("confidence_head_alpha", 0, 1e6, 0) > 0;
  markov.confidence = fields.Flag("enable_confidence_head", otherwise || trained);
  markov.confidence_reads_tokens =
      markov.confidence && fields.Flag("confidence_head_with_markov", otherwise);
  if (markov.confidence_reads_tokens && markov.rank == 0) {
    fields.all().Refuse("has confidence_head_with_markov, but markov_rank is 0");
  }
  return markov;
}

// Rows of a block see each other; layers that see a window only those before them.
void DescribeAttention(ConfigFields& layers, DflashFields& fields, ModelConfig* config) {
  const bool slides = layers.BoolOr("use_sliding_window", false);
  const int full = layers.IntOr("max_window_layers", 0, kMaxLayers, config->layer_count());
  const std::vector<bool> sliding = SlidingLayers(
      layers, config->layer_count(), [&](int layer) { return slides && layer >= full; });
  if (!layers.ok()) return;
  const bool causal = fields.At("is_causal").BoolOr("is_causal", false) ||
                      fields.At("causal").BoolOr("causal", false);
  const bool any = std::ranges::find(sliding, true) != sliding.end();
  const bool all_ways = fields.all().BoolOr("sliding_window_non_causal", false) ||
                        (fields.all().Has("is_causal") && !causal);
  if (any && all_ways) {
    fields.all().Refuse("has layers with windows that look both ways, which are not supported");
  }
  if (any && !slides) layers.Refuse("has layers with windows, but use_sliding_window is not true");
  const int window = any ? layers.Integer("sliding_window", 1, kMaxPositions) : 0;
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    AttentionSpec& attention = config->layers[i].attention;
    attention.window = sliding[i] ? window : 0;
    attention.both_ways = !sliding[i] && !causal;
  }
}

// A block of rows, of the last token and of masks, whose layers attend to what the target's states
// of the positions before make.
Result<ModelConfig> DescribeDflash(const Json& json, const std::string& where,
                                   const ModelConfig& target, bool dspark) {
  Status status;
  DflashFields fields(json, where, dspark, &status);
  const bool speculators = fields.speculators();
  std::string family = "qwen3";
  fields.all().String("model_type", &family);
  if (dspark && family != "qwen3") {
    fields.all().Refuse("model_type is '{}', but only qwen3 is supported", Printable(family));
  }
  FT_RETURN_IF_ERROR(status);
  FT_ASSIGN_OR_RETURN(ModelConfig config, speculators
                                              ? DescribeLayersWithin(json, where, kDflashFamilies)
                                              : DescribeLayers(json, where, "qwen3"));
  if (config.hidden != target.hidden) {
    fields.all().Refuse("is for a target whose hidden_size is {}, but this one's is {}",
                        config.hidden, target.hidden);
  }
  config.feature = {.join = FeatureSpec::Join::kContext,
                    .points = ReadDflashPoints(fields, target),
                    .tapped = target.hidden,
                    .reduced = true};
  config.parallel = ReadBlock(fields, config.vocabulary, /*from_last=*/dspark);
  if (dspark) config.markov = ReadMarkov(fields, config.parallel);
  ConfigFields within = fields.all().Within("transformer_layer_config");
  DescribeAttention(speculators ? within : fields.all(), fields, &config);
  const auto number = [&](const char* name, double low, double otherwise) {
    return static_cast<float>(fields.At(name).NumberOr(name, low, 1e6, otherwise));
  };
  config.embedding_scale = number("input_embedding_scale", 1e-6, 1);
  config.logit_scale = number("output_multiplier", 1e-6, 1);
  config.logit_cap = number("final_logit_softcapping", 0, 0);
  if (dspark && config.logit_cap > 0) {
    fields.all().Refuse("has final_logit_softcapping beside a Markov head, which is not supported");
  }
  config.vocabulary = fields.all().IntOr("draft_vocab_size", 1, kMaxVocabulary, config.vocabulary);
  FT_RETURN_IF_ERROR(status);
  return config;
}

Result<ModelConfig> DescribeDflash(const Json& json, const std::string& where,
                                   const ModelConfig& target, std::vector<std::string>* /*notes*/) {
  return DescribeDflash(json, where, target, /*dspark=*/false);
}

Result<ModelConfig> DescribeDspark(const Json& json, const std::string& where,
                                   const ModelConfig& target, std::vector<std::string>* /*notes*/) {
  return DescribeDflash(json, where, target, /*dspark=*/true);
}

}  // namespace

const DrafterKind kDflash = {.name = "a DFlash drafter",
                             .tensors = std::span(kDflashTensors).first(kOfDflash),
                             .describe = DescribeDflash};

const DrafterKind kDspark = {
    .name = "a DSpark drafter", .tensors = kDflashTensors, .describe = DescribeDspark};

}  // namespace foretoken
