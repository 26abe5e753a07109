#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "foretoken/types.h"

namespace foretoken {

/// How the frequencies of a rotation are stretched for contexts longer than those trained on.
struct RopeScaling {
  /// kFactors divides each frequency by a factor of its own: how GGUF files write llama3's, and
  /// what longrope says.
  enum class Kind { kNone, kLinear, kLlama3, kYarn, kFactors };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  std::int64_t original_positions = 8192;  ///< Positions that the model was first trained on.
  double low_frequency_factor = 1.0;       ///< llama3 only.
  double high_frequency_factor = 4.0;      ///< llama3 only.
  double beta_fast = 32.0;                 ///< yarn only: turns above which nothing is stretched.
  /// yarn only: turns below which everything is stretched.
  double beta_slow = 1.0;
  bool truncate = true;         ///< yarn only: whether those bounds are whole numbers.
  std::vector<double> factors;  ///< kFactors only: [dims / 2].
  /// What cos and sin are multiplied with.
  double attention_factor = 1.0;

  bool operator==(const RopeScaling&) const = default;
};

/// A rotation of queries and keys by their position.
struct RopeSpec {
  double theta = 10000.0;
  int dims = 0;  ///< Leading numbers of each head that are rotated, number i with i + dims / 2.
  RopeScaling scaling;
  /// Queries at position p are multiplied by 1 + query_growth * log(1 + floor(p / growth_step)).
  double query_growth = 0;
  int growth_step = 1;

  bool operator==(const RopeSpec&) const = default;
};

/// Multi-head latent attention: all heads read one row of numbers, of which the first `kv_rank`
/// make a key and a value of each head's own, and the others are rotated and belong to all keys.
struct LatentSpec {
  int kv_rank = 0;  ///< 0: attention is not of this kind.
  /// The rank of what queries are made of; 0: they are made of the stream itself.
  int query_rank = 0;
  int nope_dim = 0;   ///< Numbers of a head's query that are not rotated.
  int value_dim = 0;  ///< Numbers of a head's value.

  bool operator==(const LatentSpec&) const = default;
};

/// How a layer's rows see those before them.
struct AttentionSpec {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int rope = 0;         ///< Which of ModelConfig::ropes; -1: positions are not told apart.
  int window = 0;       ///< Positions that a row sees, its own included; 0: all.
  int anchors = 0;      ///< How many of the text's first positions it sees besides the window.
  double scale = 1.0;   ///< The factor of scores: usually 1 / sqrt(head_dim).
  float score_cap = 0;  ///< Scores become cap * tanh(score / cap); 0: they stay.
  bool sinks = false;   ///< A learned score of each head that takes its share of the softmax.
  /// What normalises queries and keys before they are rotated.
  /// Each head with one gain for all or with its own, or all heads as one.
  enum class QkNorm { kNone, kEachHead, kEachHeadItsOwn, kAllHeads };
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false;
  bool output_bias = false;
  bool output_gate = false;     ///< What a row attends to is times 1 / (1 + exp(-gate)) of its own.
  bool value_norm = false;      ///< Values are normalised by heads, without a gain.
  bool both_ways = false;       ///< Rows see those of their block that come behind them, too.
  bool keys_as_values = false;  ///< Values are what keys are before they are normalised.
  int kv_from = -1;  ///< Rows have queries only, and read what that layer keeps; -1: their own.
  /// Where it is there, queries and keys are, as attention reads them, `kv_rank` numbers and then
  /// the rotated ones, and there is one KV head.
  LatentSpec latent;

  bool is_latent() const { return latent.kv_rank > 0; }
  /// As the backend sees its heads.
  HeadShape shape() const { return {heads, kv_heads, head_dim, latent.kv_rank, kv_from >= 0}; }
  int query_width() const { return heads * head_dim; }
  int kv_width() const { return kv_from >= 0 ? 0 : kv_heads * head_dim; }
  /// The width of what attention makes of a row (attended_width), and of what its output projection
  /// reads (output_width).
  int attended_width() const { return heads * shape().value_dim(); }
  int output_width() const { return is_latent() ? heads * latent.value_dim : query_width(); }
  bool operator==(const AttentionSpec&) const = default;
};

/// What follows attention: activation(gate) * up, then down; by one MLP for all rows, or by the
/// experts that each row chooses, and beside them by a shared one that all rows go through.
struct MlpSpec {
  int intermediate = 0;  ///< The MLP's width, or that of each expert where there are any.
  Activation activation = Activation::kSilu;
  bool bias = false;
  Routing routing;              ///< Without experts: one MLP for all rows.
  bool router_bias = false;     ///< Added to the scores by which rows choose.
  bool choice_bias = false;     ///< Added to what rows choose by, not to what experts weigh.
  int shared_intermediate = 0;  ///< The width of the expert that all rows share; 0: there is none.
  bool shared_gate = false;     ///< It is multiplied with 1 / (1 + exp(-x . gate)) of each row x.
  /// The shared expert and the others have norms of their own, before and behind; rows choose by
  /// the stream, normalised for that; and what an expert weighs is multiplied by a number of its
  /// own.
  bool apart = false;

  bool has_experts() const { return routing.experts > 0; }
  bool has_shared() const { return shared_intermediate > 0; }

  bool operator==(const MlpSpec&) const = default;
};

/// One layer of a decoder.
struct LayerSpec {
  AttentionSpec attention;
  DeltaShape delta;  ///< Where it has heads the layer has these and no attention.
  MlpSpec mlp;

  bool is_recurrent() const { return delta.key_heads > 0; }

  bool operator==(const LayerSpec&) const = default;
};

/// What all norms of a model have in common, those of queries and keys included.
struct NormSpec {
  NormKind kind = NormKind::kRms;
  float epsilon = 1e-6F;
  bool bias = false;  ///< kLayer only.

  bool operator==(const NormSpec&) const = default;
};

/// Where norms stand around attention and the MLP.
struct BlockSpec {
  bool norm_before = true;
  bool norm_after = false;   ///< A norm of what is added to the residual stream.
  bool parallel = false;     ///< Both read the stream before either adds to it.
  bool shared_norm = false;  ///< parallel only: and through one norm.
  float scale = 1;           ///< The factor of what is added.
  bool own_scale = false;    ///< Behind each layer the stream is multiplied by its own number.

  bool operator==(const BlockSpec&) const = default;
};

/// What a learned drafter's rows begin with besides their tokens, each one's feature: a state of
/// the position before. That is what the target's passes have kept of it (TapStore), or, where it
/// has not run there yet, what the drafter's own row has left.
struct FeatureSpec {
  enum class Join {
    kNone,       ///< Rows have no features: any other model.
    kProjected,  ///< The stream begins as one projection of token and feature: EAGLE, MTP.
    /// The stream begins as the feature, and the first layer's attention reads the normalised token
    /// beside the normalised feature: EAGLE-3.
    kAttended,
    /// Features are what rows attend to: each makes a key and a value of its position in every
    /// layer, and rows are of tokens alone: DFlash.
    kContext,
    /// There are no layers: a feature is all that a row has, and each row of a block is for a head
    /// of its own, which makes logits of it: Medusa.
    kHeads,
    /// The same, but a head reads the tokens behind the feature's position as well, one more than
    /// the head before: a row's own and those between (ForwardRow::path). Where there are layers,
    /// the stream begins as the feature, and heads read what these leave: Hydra.
    kSequentialHeads,
    /// Each layer is a head: its stream begins as the feature, and what the final norm and the lm
    /// head make of its end says one position, as kHeads do. Layers keep keys and values of all
    /// positions: the heads of Meta's models that predict several tokens.
    kLayerHeads,
  };
  Join join = Join::kNone;
  std::vector<int> points;  ///< The target's points whose states it reads (TapShape::points).
  int tapped = 0;           ///< The target's hidden size.
  bool reduced = false;     ///< What was kept is projected to the drafter's hidden size.
  /// What normalises it before that: each point by itself, or all as one.
  enum class TapNorm { kNone, kEachPoint, kAll };
  TapNorm tap_norm = TapNorm::kNone;
  bool normed = false;         ///< kProjected: token and feature are normalised before.
  bool feature_first = false;  ///< kProjected: the projection has the feature's half first.
  bool bias = false;           ///< kProjected: the projection has one.
  bool normed_stream = false;  ///< kAttended: the stream begins as the normalised feature.
  bool leaves_normed = false;  ///< A row leaves what the final norm makes, not the stream itself.
  bool masked = false;         ///< kAttended: rows without one have a feature that was learned.
  bool first_norm = true;      ///< The first layer's attention has a norm of its own.
  int heads = 0;               ///< kHeads and kSequentialHeads: so many.
  /// Blocks of each head: what it adds to the feature, one after the other.
  int head_blocks = 0;
  bool output_norm = true;  ///< There is a final norm.

  bool there() const { return join != Join::kNone; }
  /// Whether rows of tokens begin with features, and leave such; of sequential heads these are the
  /// ones that they have read.
  bool in_rows() const {
    return join == Join::kProjected || join == Join::kAttended || sequential();
  }
  bool sequential() const { return join == Join::kSequentialHeads; }
  /// Whether each row of a block is for a head of its own, which reads the feature of the position
  /// before the block.
  bool head_for_each_row() const { return join == Join::kHeads || join == Join::kLayerHeads; }
  /// Whether the stream begins as the feature itself.
  bool enters_stream() const { return sequential() || join == Join::kLayerHeads; }
  /// Whether heads make logits, each with a matrix of its own in place of the lm head.
  bool has_heads() const { return join == Join::kHeads || sequential(); }
  /// Numbers that the target keeps of a position.
  int tap_width() const { return std::ssize(points) * tapped; }
  bool operator==(const FeatureSpec&) const = default;
};

/// How many positions' tokens a draft says in one pass: the row of the last token says the first,
/// and rows of the mask token behind it one further each.
struct ParallelSpec {
  int positions = 1;      ///< At most; 1: as any model.
  Token mask_token = -1;  ///< Stands for a token that is not known yet.
  /// Rows of a pass, that of the last token included, however few positions are wanted: such rows
  /// see each other, or have heads of their own (FeatureSpec). 0: as many as are wanted.
  int block = 0;
  bool in_place = false;  ///< Masks say what stands in their own places, the last token nothing.

  bool there() const { return positions > 1 || block > 0; }
  /// Rows of a pass that says `depths` positions.
  int rows(int depths) const { return block > 0 ? block : depths; }
  /// Whether one of them, that of the last token being number `first`, says one.
  bool Says(int row, int depths, int first = 0) const {
    const int depth = row - first - (in_place ? 1 : 0);
    return depth >= 0 && depth < depths;
  }
  bool operator==(const ParallelSpec&) const = default;
};

/// What the tokens before a position add to what a draft says of it that says several positions in
/// a pass (ParallelSpec): DSpark's heads. A token is looked up as `rank` numbers, which are
/// projected to what is added to the logits of the position behind it.
struct MarkovSpec {
  enum class Kind {
    kVanilla,
    kGated,      ///< The numbers are times gates, of themselves and of the position's state.
    kRecurrent,  ///< In their place stands what a recurrent cell makes of them along the path.
  };
  int rank = 0;  ///< 0: nothing is added.
  Kind kind = Kind::kVanilla;
  /// A head says how likely a position's token is to be accepted, of the position's state and, if
  /// it reads tokens, of the numbers of the token before.
  bool confidence = false;
  bool confidence_reads_tokens = false;

  bool there() const { return rank > 0 || confidence; }
  /// What the confidence head reads.
  int confidence_width(int hidden) const { return hidden + (confidence_reads_tokens ? rank : 0); }
  bool operator==(const MarkovSpec&) const = default;
};

/// A decoder as data: what one walk over its layers computes, and the tokens that begin and end its
/// texts. Made by a family (core/model/families/family.h) of what a checkpoint says.
struct ModelConfig {
  std::string architecture;  ///< As config.json names it: "LlamaForCausalLM".
  std::string family;        ///< Family::name.
  int hidden = 0;
  int vocabulary = 0;
  int embedded = 0;  ///< Tokens that it reads, where these are more than it says; else 0.
  int max_positions = 0;
  FeatureSpec feature;
  ParallelSpec parallel;
  MarkovSpec markov;
  std::vector<LayerSpec> layers;
  std::vector<RopeSpec> ropes;
  NormSpec norm;
  BlockSpec block;
  float embedding_scale = 1;
  /// Numbers that each layer is given of every token besides the stream; 0: none.
  int layer_input = 0;
  float logit_scale = 1;
  float logit_cap = 0;  ///< Logits become cap * tanh(logit / cap); 0: they stay.
  bool tied_embeddings = false;
  Token bos = -1;
  std::vector<Token> eos;  ///< From generation_config.json where present, else config.json.

  int layer_count() const { return layers.size(); }
  int embeddings() const { return std::max(embedded, vocabulary); }
  /// The attention of the first layer that has any: what is said of a model whose layers may
  /// differ. One of nothing where there are no layers.
  const AttentionSpec& first_attention() const;
  /// Weights of the whole model, all experts included; a tied embedding table counts once.
  std::int64_t parameters() const;
};

/// Leading numbers of each head whose rows are put in the order that rotation takes where files
/// have another: of a layer that rotates nothing all, as files have all of them in that order.
int RotatedDims(const ModelConfig& config, const AttentionSpec& attention);

/// The sizes of a decoder of Llama's shape, all of whose layers are alike.
struct LlamaSizes {
  int hidden = 0;
  int intermediate = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocabulary = 0;
  int max_positions = 0;
  double rope_theta = 10000.0;
  bool tied_embeddings = false;
};
ModelConfig LlamaConfig(const LlamaSizes& sizes);

}  // namespace foretoken
