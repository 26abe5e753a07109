#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/llama/llama_weights.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxRows = 256;

// Makes room for `floats` values; contents are lost when it grows.
void Grow(Buffer& buffer, std::size_t floats) {
  if (buffer.bytes() < floats * sizeof(float)) buffer = Buffer(floats * sizeof(float));
}

HeadShape HeadsOf(const ModelConfig& config) {
  return HeadShape{config.heads, config.kv_heads, config.head_dim};
}

// Activations of one part of a pass, each [rows, its width].
struct Workspace {
  std::vector<RowPlace> places;
  std::vector<Token> tokens;
  Buffer hidden;    // The residual stream.
  Buffer normed;    // [rows, hidden]
  Buffer qkv;       // [rows, row_width]
  Buffer attended;  // [rows, heads * head_dim]
  Buffer gate_up;   // [rows, 2 * intermediate]
  Buffer mixed;     // [rows, intermediate]
  Buffer logits;    // [wanted rows, vocabulary]
  Buffer maxima;    // [wanted rows, groups of the vocabulary]
  Buffer states;    // [rows that want theirs, hidden]

  void GrowTo(std::size_t rows, const ModelConfig& config) {
    places.reserve(rows);
    tokens.reserve(rows);
    const auto width = static_cast<std::size_t>(config.hidden);
    Grow(hidden, rows * width);
    Grow(normed, rows * width);
    Grow(qkv, rows * static_cast<std::size_t>(HeadsOf(config).row_width()));
    Grow(attended, rows * config.heads * config.head_dim);
    Grow(gate_up, rows * 2 * config.intermediate);
    Grow(mixed, rows * config.intermediate);
  }
};

// A Llama-family decoder on one device.
class LlamaModel final : public Model {
 public:
  LlamaModel(std::shared_ptr<const LlamaWeights> weights, Backend* backend)
      : weights_(std::move(weights)), config_(weights_->config()), backend_(backend) {}

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return *backend_; }
  std::size_t weight_bytes() const override { return weights_->bytes_of_pass(); }
  void Reserve(std::size_t rows, std::size_t wanted) override;

  // A batch of more than kMaxRows rows runs as consecutive parts of at most that many. Since a
  // row attends only to rows before it, and rows do not see each other otherwise, the parts give
  // the same bits as one pass would.
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override;
  const float* states() const override { return workspace_.states.as<float>(); }

 private:
  // Rows of the parts before, whose logits and states are there.
  struct Done {
    std::int64_t logits = 0;
    std::int64_t states = 0;
  };

  void ForwardLayer(int layer, const BatchPlan& plan, KvStore& kv);
  bool ForwardPart(const ForwardBatch& batch, std::size_t begin, std::size_t count, KvStore& kv,
                   Interrupt interrupt, Done* done);
  std::int64_t Normalise(std::span<const ForwardRow> rows, bool ForwardRow::*wanted, float* out);

  std::shared_ptr<const LlamaWeights> weights_;
  const ModelConfig& config_;  // The weights'.
  Backend* backend_;
  Workspace workspace_;
};

void LlamaModel::ForwardLayer(int index, const BatchPlan& plan, KvStore& kv) {
  const LlamaLayerWeights& layer = weights_->tensors.layers[index];
  const HeadShape heads = HeadsOf(config_);
  const int rows = static_cast<int>(plan.rows.size());
  float* hidden = workspace_.hidden.as<float>();
  float* normed = workspace_.normed.as<float>();
  float* qkv = workspace_.qkv.as<float>();
  float* attended = workspace_.attended.as<float>();
  float* gate_up = workspace_.gate_up.as<float>();
  float* mixed = workspace_.mixed.as<float>();

  backend_->RmsNorm(hidden, layer.attention_norm.as<float>(), config_.norm_epsilon, rows,
                    config_.hidden, normed);
  backend_->MatMul(layer.qkv, normed, rows, qkv);
  backend_->RotateAndStore(weights_->rope, plan, heads, index, qkv, kv);
  backend_->Attention(plan, heads, index, qkv, kv, attended);
  backend_->MatMulAdd(layer.output, attended, rows, hidden);

  backend_->RmsNorm(hidden, layer.mlp_norm.as<float>(), config_.norm_epsilon, rows, config_.hidden,
                    normed);
  backend_->MatMul(layer.gate_up, normed, rows, gate_up);
  backend_->SiluMul(gate_up, rows, config_.intermediate, mixed);
  backend_->MatMulAdd(layer.down, mixed, rows, hidden);
}

// The final norm of the rows that want it, one behind the other, so that the lm head sees no
// others. Returns how many they are.
std::int64_t LlamaModel::Normalise(std::span<const ForwardRow> rows, bool ForwardRow::*wanted,
                                   float* out) {
  const float* hidden = workspace_.hidden.as<float>();
  std::int64_t count = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!(rows[r].*wanted)) continue;
    std::copy_n(hidden + r * config_.hidden, config_.hidden, out + count * config_.hidden);
    ++count;
  }
  if (count == 0) return 0;
  backend_->RmsNorm(out, weights_->tensors.final_norm.as<float>(), config_.norm_epsilon,
                    static_cast<int>(count), config_.hidden, out);
  return count;
}

bool LlamaModel::ForwardPart(const ForwardBatch& batch, std::size_t begin, std::size_t count,
                             KvStore& kv, Interrupt interrupt, Done* done) {
  const std::span<const ForwardRow> rows = std::span(batch.rows).subspan(begin, count);
  workspace_.places.clear();
  workspace_.tokens.clear();
  for (const ForwardRow& row : rows) {
    workspace_.places.push_back(row.place);
    workspace_.tokens.push_back(row.token);
  }
  const BatchPlan plan{workspace_.places, batch.block_tables, batch.tail_slots};

  float* hidden = workspace_.hidden.as<float>();
  backend_->Embed(weights_->tensors.embedding, workspace_.tokens, hidden);
  for (int layer = 0; layer < config_.layers; ++layer) {
    if (interrupt.Raised()) return false;
    ForwardLayer(layer, plan, kv);
  }

  done->states += Normalise(rows, &ForwardRow::wants_state,
                            workspace_.states.as<float>() + done->states * config_.hidden);
  float* normed = workspace_.normed.as<float>();
  const std::int64_t wanted = Normalise(rows, &ForwardRow::wants_logits, normed);
  if (wanted == 0) return true;
  // The lm head of a small draft takes longer than its layers.
  if (interrupt.Raised()) return false;
  const std::int64_t groups = Logits::Groups(config_.vocabulary);
  backend_->MatMulMaxima(weights_->head(), normed, static_cast<int>(wanted),
                         workspace_.logits.as<float>() + done->logits * config_.vocabulary,
                         workspace_.maxima.as<float>() + done->logits * groups);
  done->logits += wanted;
  return true;
}

void LlamaModel::Reserve(std::size_t rows, std::size_t wanted) {
  workspace_.GrowTo(std::min(rows, kMaxRows), config_);
  Grow(workspace_.logits, wanted * config_.vocabulary);
  Grow(workspace_.maxima, wanted * Logits::Groups(config_.vocabulary));
}

Logits LlamaModel::Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) {
  const std::size_t total = batch.rows.size();
  const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
  // At least one row's worth, so that a pass without wanted rows is told from an interrupted one.
  Reserve(total, static_cast<std::size_t>(std::max<std::ptrdiff_t>(wanted, 1)));
  const auto stated = std::ranges::count_if(batch.rows, &ForwardRow::wants_state);
  Grow(workspace_.states, static_cast<std::size_t>(stated * config_.hidden));

  Done done;
  for (std::size_t begin = 0; begin < total; begin += kMaxRows) {
    const std::size_t count = std::min(kMaxRows, total - begin);
    if (!ForwardPart(batch, begin, count, kv, interrupt, &done)) return {};
  }
  return {workspace_.logits.as<float>(), workspace_.maxima.as<float>()};
}

}  // namespace

std::unique_ptr<Model> LlamaWeights::MakeModel(Backend* backend) const {
  FT_CHECK(backend->layout() == layout_, "weights are packed as {}, but {} reads {}", layout_,
           backend->name(), backend->layout());
  return std::make_unique<LlamaModel>(shared_from_this(), backend);
}

}  // namespace foretoken
