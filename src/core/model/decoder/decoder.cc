#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/model/config/sublayers.h"
#include "core/model/decoder/decoder_weights.h"
#include "core/model/decoder/decoder_workspace.h"
#include "core/model/decoder/float_buffer.h"
#include "core/model/decoder/layer_inputs.h"
#include "core/model/decoder/mixers.h"
#include "core/model/heads/heads_models.h"
#include "core/model/heads/markov_mixer.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxRows = 256;

// Layers of a model, up to the one before `end`.
struct LayerRange {
  int first = 0;
  int end = 0;
};

// A decoder on one device: one walk over the layers of its description.
class Decoder final : public Model {
 public:
  /// Decodes with `layers`, which all rows pass one after the other.
  Decoder(std::shared_ptr<const DecoderWeights> weights, LayerRange layers,
          std::shared_ptr<const AdapterSet> adapters, Backend* backend)
      : layers_(layers),
        weights_(std::move(weights)),
        config_(weights_->config()),
        widths_(config_),
        backend_(backend),
        adapters_(std::move(adapters)) {
    int before = 0;
    for (const LayerSpec& layer : config_.layers) {
      delta_numbers_.push_back(before);
      if (layer.is_recurrent()) ++before;
    }
  }

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return *backend_; }
  std::size_t weight_bytes() const override { return weights_->bytes_of_pass(); }
  int adapters() const override { return adapters_.count(); }
  void Reserve(std::size_t rows, std::size_t wanted) override;

  // A batch of more than kMaxRows rows runs as consecutive parts of at most that many. Since a
  // row attends only to rows before it, and rows do not see each other otherwise, the parts give
  // the same bits as one pass would.
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override;
  const float* states() const override { return workspace_.states.as<float>(); }
  PathLogits Follow(std::span<const PathRow> rows) override {
    if (!config_.markov.there()) return {};
    return markov_.Follow(config_, weights_->tensors.markov, rows, workspace_.logits.as<float>(),
                          backend_);
  }

 private:
  // Rows of the parts before, whose logits and states are there.
  struct Done {
    std::int64_t logits = 0;
    std::int64_t states = 0;
  };

  void Normalise(const NormWeights& norm, const float* x, int rows, float* out);
  // A matrix of a layer that adapters may change.
  struct Linear {
    const LinearWeights& weights;
    int layer;
    AdaptedMatrix matrix;
  };
  void Multiply(const Linear& linear, const float* x, int rows, float* y) {
    foretoken::Multiply(linear.weights, x, rows, backend_, y);
    adapters_.Add(linear.layer, linear.matrix, x, y, backend_);
  }
  const float* Enter(const NormWeights& norm, int rows);
  void Leave(const Linear& linear, const NormWeights& post_norm, const float* x, int rows);
  void AddToStream(const NormWeights& post_norm, int rows, float* added);
  void MixRows(int layer, const float* x, const BatchPlan& plan, KvStore& kv);
  void MakeQueriesAndKeys(int layer, const float* x, int rows, float* qkv);
  void Attend(int layer, const float* x, const BatchPlan& plan, KvStore& kv);
  void GateAttended(const LayerWeights& layer, int width, const float* x, int rows);
  float* MixExperts(const MlpSpec& mlp, const LayerWeights& layer, const float* entered, int rows);
  float* MixMlp(int layer, const float* entered, int rows);
  void ForwardLayer(int layer, const BatchPlan& plan, KvStore& kv);
  void EndLayer(int layer, int rows);
  BatchPlan Place(std::span<const ForwardRow> rows, const ForwardBatch& batch);
  bool ForwardPart(std::span<const ForwardRow> rows, const ForwardBatch& batch, KvStore& kv,
                   Interrupt interrupt, Done* done);
  bool KeepContext(std::span<const ForwardRow> rows, const ForwardBatch& batch, KvStore& kv,
                   Interrupt interrupt);
  const RopeTable* RopeOf(const AttentionSpec& spec) const {
    return spec.rope < 0 ? nullptr : &weights_->ropes[spec.rope];
  }
  void Begin(std::span<const ForwardRow> rows);
  void KeepTaps(int point, const float* states, const BatchPlan& plan, KvStore& kv);
  std::int64_t Finish(std::span<const ForwardRow> rows, bool ForwardRow::*wanted, bool normed,
                      float* out);

  LayerRange layers_;
  std::shared_ptr<const DecoderWeights> weights_;
  const ModelConfig& config_;  // The weights'.
  DecoderWidths widths_;
  Backend* backend_;
  DecoderWorkspace workspace_;
  ExpertMixer experts_;
  LatentMixer latent_;
  LayerInputs layer_inputs_;
  FeatureMixer features_;
  MarkovMixer markov_;
  DeltaMixer delta_;
  // The rows of a pass that carry features for others to attend to.
  std::vector<ForwardRow> context_rows_;
  std::vector<ForwardRow> token_rows_;  // The other rows of that pass.
  std::vector<int> delta_numbers_;      // Recurrent layers before each layer.
  AdapterMixer adapters_;
};

void Decoder::Normalise(const NormWeights& norm, const float* x, int rows, float* out) {
  const NormSpec& spec = config_.norm;
  if (spec.kind == NormKind::kRms) {
    backend_->RmsNorm(x, norm.gain.as<float>(), spec.epsilon, rows, config_.hidden, out);
    return;
  }
  const float* bias = norm.bias.bytes() == 0 ? nullptr : norm.bias.as<float>();
  backend_->LayerNorm(x, norm.gain.as<float>(), bias, spec.epsilon, rows, config_.hidden, out);
}

// What a block reads of the residual stream.
const float* Decoder::Enter(const NormWeights& norm, int rows) {
  const float* hidden = workspace_.hidden.as<float>();
  if (!norm.there()) return hidden;
  Normalise(norm, hidden, rows, workspace_.normed.as<float>());
  return workspace_.normed.as<float>();
}

// Adds a block's output projection of x to the residual stream.
void Decoder::Leave(const Linear& linear, const NormWeights& post_norm, const float* x, int rows) {
  if (linear.weights.bias.bytes() == 0 && !post_norm.there() && config_.block.scale == 1) {
    float* hidden = workspace_.hidden.as<float>();
    backend_->MatMulAdd(linear.weights.matrix, x, rows, hidden);
    return adapters_.Add(linear.layer, linear.matrix, x, hidden, backend_);
  }
  float* added = workspace_.added.as<float>();
  Multiply(linear, x, rows, added);
  AddToStream(post_norm, rows, added);
}

// Adds what a block has made, which is changed on the way.
void Decoder::AddToStream(const NormWeights& post_norm, int rows, float* added) {
  const std::int64_t count = std::int64_t{rows} * config_.hidden;
  if (post_norm.there()) Normalise(post_norm, added, rows, added);
  if (config_.block.scale != 1) backend_->Scale(config_.block.scale, count, added);
  backend_->Add(added, count, workspace_.hidden.as<float>());
}

// Makes of rows `x` what attention reads, not rotated yet.
void Decoder::MakeQueriesAndKeys(int index, const float* x, int rows, float* qkv) {
  const LayerWeights& layer = weights_->tensors.layers[index];
  const AttentionSpec& spec = config_.layers[index].attention;
  if (spec.is_latent()) return latent_.Fold(spec, layer.latent, x, rows, backend_, qkv);
  Multiply({layer.qkv, index, AdaptedMatrix::kQkv}, x, rows, qkv);
  const bool all = spec.qk_norm == AttentionSpec::QkNorm::kAllHeads;
  const bool own = spec.qk_norm == AttentionSpec::QkNorm::kEachHeadItsOwn;
  const auto normalise = [&](const NormWeights& weights, bool as_one, int heads, float* at) {
    if (!weights.there()) return;
    const PartsNorm norm{config_.norm.kind, config_.norm.epsilon, weights.gain.as<float>(), own};
    backend_->NormParts(norm, rows, spec.shape().row_width(), as_one ? 1 : heads,
                        as_one ? heads * spec.head_dim : spec.head_dim, at);
  };
  float* const keys = qkv + spec.query_width();
  normalise(layer.q_norm, all, spec.heads, qkv);
  normalise(layer.k_norm, all, spec.kv_heads, keys);
  if (spec.kv_from < 0) normalise(layer.v_norm, false, spec.kv_heads, keys + spec.kv_width());
}

// What rows `x` take from those before them, into workspace_.attended.
void Decoder::MixRows(int index, const float* x, const BatchPlan& plan, KvStore& kv) {
  const std::size_t at = index;
  const LayerSpec& spec = config_.layers[at];
  if (!spec.is_recurrent()) return Attend(index, x, plan, kv);
  delta_.Mix(spec, weights_->tensors.layers[at], config_.norm, delta_numbers_[at], x, plan,
             backend_, kv, workspace_.attended.as<float>());
}

// Attention of rows `x`, into workspace_.attended.
void Decoder::Attend(int index, const float* x, const BatchPlan& plan, KvStore& kv) {
  const LayerWeights& layer = weights_->tensors.layers[index];
  const AttentionSpec& spec = config_.layers[index].attention;
  const int rows = plan.rows.size();
  float* qkv = workspace_.qkv.as<float>();
  float* attended = workspace_.attended.as<float>();
  MakeQueriesAndKeys(index, x, rows, qkv);
  const AttentionRule rule{.scale = spec.scale,
                           .window = spec.window,
                           .anchors = spec.anchors,
                           .score_cap = spec.score_cap,
                           .sinks = spec.sinks ? layer.sinks.as<float>() : nullptr};
  backend_->RotateAndStore(RopeOf(spec), plan, spec.shape(), index, qkv, kv);
  const int kept_in = spec.kv_from < 0 ? index : spec.kv_from;
  const BatchPlan both_ways{workspace_.seen, plan.block_tables, plan.tail_slots};
  backend_->Attention(spec.both_ways ? both_ways : plan, spec.shape(), rule, kept_in, qkv, kv,
                      attended);
  if (spec.is_latent()) latent_.Unfold(spec, layer.latent, rows, backend_, attended);
  if (spec.output_gate) GateAttended(layer, spec.query_width(), x, rows);
}

void Decoder::GateAttended(const LayerWeights& layer, int width, const float* x, int rows) {
  float* const gates = workspace_.gates.as<float>();
  float* const attended = workspace_.attended.as<float>();
  float* const gated = workspace_.gated.as<float>();
  foretoken::Multiply(layer.output_gate, x, rows, backend_, gates);
  LayGatesBeside(gates, attended, width, rows, width, gated);
  backend_->GatedMul(Activation::kSigmoid, gated, rows, width, attended);
}

// What a layer's input of each token adds to the stream, and what the stream is scaled by.
void Decoder::EndLayer(int index, int rows) {
  const LayerWeights& layer = weights_->tensors.layers[index];
  float* hidden = workspace_.hidden.as<float>();
  if (config_.layer_input > 0) {
    const Activation activation = config_.layers[index].mlp.activation;
    const float* gated =
        layer_inputs_.Gate(config_, layer.input_gate, activation, index, hidden, rows, backend_);
    float* added = workspace_.added.as<float>();
    foretoken::Multiply(layer.input_projection, gated, rows, backend_, added);
    AddToStream(layer.input_post_norm, rows, added);
  }
  if (config_.block.own_scale) {
    backend_->Scale(*layer.scale.as<float>(), std::int64_t{rows} * config_.hidden, hidden);
  }
}

// What the experts of a layer make of what has entered it; where they are apart, of the stream.
float* Decoder::MixExperts(const MlpSpec& mlp, const LayerWeights& layer, const float* entered,
                           int rows) {
  ExpertInputs inputs{entered, entered, entered};
  if (mlp.apart) {
    const float* hidden = workspace_.hidden.as<float>();
    float* const for_router = workspace_.apart.as<float>();
    float* const for_experts = for_router + std::ptrdiff_t{rows} * config_.hidden;
    Normalise(layer.router_norm, hidden, rows, for_router);
    Normalise(layer.experts_norm, hidden, rows, for_experts);
    inputs.router = for_router;
    inputs.experts = for_experts;
  }
  return experts_.Mix(mlp, layer, inputs, config_.norm.epsilon, rows, backend_);
}

void Decoder::ForwardLayer(int index, const BatchPlan& plan, KvStore& kv) {
  const LayerWeights& layer = weights_->tensors.layers[index];
  const LayerSpec& spec = config_.layers[index];
  const int rows = plan.rows.size();
  const auto leave_mixer = [&] {
    if (!HasMixer(spec)) return;
    Leave({layer.output, index, AdaptedMatrix::kOutput}, layer.attention_post_norm,
          workspace_.attended.as<float>(), rows);
  };

  const bool begins = index == 0 && config_.feature.join == FeatureSpec::Join::kAttended;
  const float* entered = nullptr;
  if (HasMixer(spec) || config_.block.shared_norm) {
    entered = begins ? features_.attended() : Enter(layer.attention_norm, rows);
  }
  if (HasMixer(spec)) MixRows(index, entered, plan, kv);
  if (!config_.block.parallel) leave_mixer();
  float* made = nullptr;
  if (HasMlp(spec)) {
    if (!config_.block.shared_norm) entered = Enter(layer.mlp_norm, rows);
    made = MixMlp(index, entered, rows);
  }
  if (config_.block.parallel) leave_mixer();
  if (!HasMlp(spec)) return;
  if (spec.mlp.has_experts()) return AddToStream(layer.mlp_post_norm, rows, made);
  Leave({layer.down, index, AdaptedMatrix::kDown}, layer.mlp_post_norm, made, rows);
}

// What a layer's MLP, or its experts, make of what has entered it; with one MLP it is not projected
// down yet.
float* Decoder::MixMlp(int index, const float* entered, int rows) {
  const LayerWeights& layer = weights_->tensors.layers[index];
  const MlpSpec& mlp = config_.layers[index].mlp;
  if (mlp.has_experts()) return MixExperts(mlp, layer, entered, rows);
  float* const gate_up = workspace_.gate_up.as<float>();
  float* const mixed = workspace_.mixed.as<float>();
  Multiply({layer.gate_up, index, AdaptedMatrix::kGateUp}, entered, rows, gate_up);
  backend_->GatedMul(mlp.activation, gate_up, rows, mlp.intermediate, mixed);
  return mixed;
}

// The residual stream of the rows that want it, one behind the other, so that the lm head sees no
// others; through the final norm where it is `normed`. Returns how many they are.
std::int64_t Decoder::Finish(std::span<const ForwardRow> rows, bool ForwardRow::*wanted,
                             bool normed, float* out) {
  const float* hidden = workspace_.hidden.as<float>();
  std::int64_t count = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!(rows[r].*wanted)) continue;
    std::copy_n(hidden + r * config_.hidden, config_.hidden, out + count * config_.hidden);
    ++count;
  }
  const NormWeights& norm = weights_->tensors.output_norm;
  if (count > 0 && normed && norm.there()) Normalise(norm, out, Int(count), out);
  return count;
}

// What rows begin as.
void Decoder::Begin(std::span<const ForwardRow> rows) {
  float* hidden = workspace_.hidden.as<float>();
  Embed(weights_->tensors.embedding, workspace_.tokens, config_.hidden, backend_, hidden);
  if (config_.embedding_scale != 1) {
    backend_->Scale(config_.embedding_scale, std::ssize(rows) * config_.hidden, hidden);
  }
  if (config_.layer_input > 0) {
    layer_inputs_.Prepare(config_, weights_->tensors.layer_inputs, workspace_.tokens, hidden,
                          backend_);
  }
  if (config_.feature.in_rows() || config_.feature.enters_stream()) {
    features_.Begin(config_, weights_->tensors.feature, rows, backend_, hidden);
  }
}

void Decoder::KeepTaps(int point, const float* states, const BatchPlan& plan, KvStore& kv) {
  if (kv.taps.Has(point)) kv.taps.Keep(point, plan.rows, states);
}

// The places of a part of a pass, whose tokens are listed as well.
BatchPlan Decoder::Place(std::span<const ForwardRow> rows, const ForwardBatch& batch) {
  workspace_.places.clear();
  workspace_.seen.clear();
  workspace_.tokens.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    workspace_.places.push_back(rows[r].place);
    workspace_.seen.push_back(rows[r + rows[r].block_left].place);
    workspace_.tokens.push_back(rows[r].token);
  }
  return {workspace_.places, batch.block_tables, batch.tail_slots};
}

// Rows of features alone: their keys and values in every layer.
bool Decoder::KeepContext(std::span<const ForwardRow> rows, const ForwardBatch& batch, KvStore& kv,
                          Interrupt interrupt) {
  const BatchPlan plan = Place(rows, batch);
  const int count = rows.size();
  const float* context = features_.Context(config_, weights_->tensors.feature, rows, backend_);
  float* qkv = workspace_.qkv.as<float>();
  for (int layer = 0; layer < config_.layer_count(); ++layer) {
    if (interrupt.Raised()) return false;
    const AttentionSpec& spec = config_.layers[layer].attention;
    MakeQueriesAndKeys(layer, context, count, qkv);
    backend_->RotateAndStore(RopeOf(spec), plan, spec.shape(), layer, qkv, kv);
  }
  return true;
}

bool Decoder::ForwardPart(std::span<const ForwardRow> rows, const ForwardBatch& batch, KvStore& kv,
                          Interrupt interrupt, Done* done) {
  adapters_.Begin(rows);
  const BatchPlan plan = Place(rows, batch);

  Begin(rows);
  const bool taps = !kv.taps.shape.points.empty();
  const float* hidden = workspace_.hidden.as<float>();
  for (int layer = layers_.first; layer < layers_.end; ++layer) {
    if (interrupt.Raised()) return false;
    if (taps) KeepTaps(layer, hidden, plan, kv);
    const LayerSpec& spec = config_.layers[layer];
    if (!HasMixer(spec) && !HasMlp(spec)) continue;
    ForwardLayer(layer, plan, kv);
    EndLayer(layer, static_cast<int>(std::ssize(rows)));
  }

  float* normed = workspace_.normed.as<float>();
  if (taps) {
    KeepTaps(config_.layer_count(), hidden, plan, kv);
    if (kv.taps.Has(TapShape::kFinalState)) {
      Normalise(weights_->tensors.output_norm, hidden, Int(rows.size()), normed);
      KeepTaps(TapShape::kFinalState, normed, plan, kv);
    }
  }
  const bool leaves_normed = !config_.feature.there() || config_.feature.leaves_normed;
  done->states += Finish(rows, &ForwardRow::wants_state, leaves_normed,
                         workspace_.states.as<float>() + done->states * config_.hidden);
  const std::int64_t wanted = Finish(rows, &ForwardRow::wants_logits, /*normed=*/true, normed);
  if (wanted == 0) return true;
  if (config_.markov.there()) markov_.Keep(config_, normed, done->logits, wanted);
  // The lm head of a small draft takes longer than its layers.
  if (interrupt.Raised()) return false;
  if (config_.logit_scale != 1) {
    backend_->Scale(config_.logit_scale, wanted * config_.hidden, normed);
  }
  float* logits = workspace_.logits.as<float>() + done->logits * config_.vocabulary;
  float* maxima = workspace_.maxima.as<float>() + done->logits * Logits::Groups(config_.vocabulary);
  backend_->MatMulMaxima(weights_->head(), normed, static_cast<int>(wanted), logits, maxima);
  if (config_.logit_cap != 0) {
    backend_->CapLogits(config_.logit_cap, static_cast<int>(wanted), config_.vocabulary, logits,
                        maxima);
  }
  done->logits += wanted;
  return true;
}

void Decoder::Reserve(std::size_t rows, std::size_t wanted) {
  workspace_.GrowTo(std::min(rows, kMaxRows), widths_);
  experts_.GrowTo(std::min(rows, kMaxRows), config_);
  latent_.GrowTo(std::min(rows, kMaxRows), config_);
  layer_inputs_.GrowTo(std::min(rows, kMaxRows), config_);
  features_.GrowTo(std::min(rows, kMaxRows), config_);
  delta_.GrowTo(std::min(rows, kMaxRows), config_);
  adapters_.GrowTo(std::min(rows, kMaxRows));
  markov_.GrowTo(wanted, config_);
  GrowFloats(workspace_.logits, wanted * config_.vocabulary);
  GrowFloats(workspace_.maxima, wanted * Logits::Groups(config_.vocabulary));
}

Logits Decoder::Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) {
  const std::size_t total = batch.rows.size();
  const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
  // At least one row's worth, so that a pass without wanted rows is told from an interrupted one.
  Reserve(total, Size(std::max<std::ptrdiff_t>(wanted, 1)));
  const auto stated = std::ranges::count_if(batch.rows, &ForwardRow::wants_state);
  GrowFloats(workspace_.states, Size(stated * config_.hidden));

  std::span<const ForwardRow> rows = batch.rows;
  if (config_.feature.join == FeatureSpec::Join::kContext) {
    // What rows of tokens attend to comes first.
    context_rows_.clear();
    token_rows_.clear();
    for (const ForwardRow& row : rows) {
      (row.feature.kept != nullptr ? context_rows_ : token_rows_).push_back(row);
    }
    for (std::span<const ForwardRow> left = context_rows_; !left.empty();) {
      const std::size_t count = std::min(kMaxRows, left.size());
      if (!KeepContext(left.first(count), batch, kv, interrupt)) return {};
      left = left.subspan(count);
    }
    rows = token_rows_;
  }
  Done done;
  while (!rows.empty()) {
    std::size_t count = std::min(kMaxRows, rows.size());
    if (count < rows.size()) {  // Not within a block.
      while (rows[count - 1].block_left > 0) --count;
    }
    if (!ForwardPart(rows.first(count), batch, kv, interrupt, &done)) return {};
    rows = rows.subspan(count);
  }
  return {workspace_.logits.as<float>(), workspace_.maxima.as<float>()};
}

}  // namespace

std::unique_ptr<Model> DecoderWeights::MakeModel(Backend* backend,
                                                 std::shared_ptr<const AdapterSet> adapters) const {
  FT_CHECK(backend->layout() == layout_, "weights are packed as {}, but {} reads {}", layout_,
           backend->name(), backend->layout());
  FT_CHECK(adapters == nullptr || adapters->layout() == layout_, "adapters are packed as {}",
           adapters->layout());
  const auto make = [&](LayerRange layers) {
    return std::make_unique<Decoder>(shared_from_this(), layers, adapters, backend);
  };
  if (config_.feature.join == FeatureSpec::Join::kLayerHeads) {
    std::vector<std::unique_ptr<Model>> heads;
    for (int i = 0; i < config_.layer_count(); ++i) heads.push_back(make({i, i + 1}));
    return MakeLayerHeadsModel(shared_from_this(), std::move(heads), backend);
  }
  auto all = make({0, config_.layer_count()});
  if (tensors.heads.empty()) return all;
  return MakeHeadsModel(shared_from_this(), std::move(all), backend);
}

}  // namespace foretoken
