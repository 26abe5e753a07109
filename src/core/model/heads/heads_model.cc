#include "base/numbers/integers.h"
#include "core/model/heads/heads_models.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/model/decoder/float_buffer.h"

namespace foretoken {
namespace {

// NaN left out.
float LargestOf(std::span<const float> logits) {
  float most = -std::numeric_limits<float>::infinity();
  for (const float logit : logits) most = logit > most ? logit : most;
  return most;
}

class HeadsModel final : public Model {
 public:
  HeadsModel(std::shared_ptr<const DecoderWeights> weights, std::unique_ptr<Model> layers,
             Backend* backend)
      : weights_(std::move(weights)),
        config_(weights_->config()),
        groups_(Logits::Groups(config_.vocabulary)),
        layers_(std::move(layers)),
        backend_(backend) {}

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return *backend_; }
  std::size_t weight_bytes() const override { return weights_->bytes_of_pass(); }
  const float* states() const override { return left_.as<float>(); }
  void Reserve(std::size_t rows, std::size_t wanted) override;

  // Head by head, whose weights are then read once for all sequences.
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override;

 private:
  // A row that wants logits, which are its `number`-th, and the state that its head reads.
  struct Wanted {
    const ForwardRow* row;
    const float* state;
    std::int64_t number;
  };

  std::size_t HeadOf(const ForwardRow& row) const;
  // Finds the states of all rows that want anything, and whose heads' they are. False where the
  // pass is given up.
  bool ReadStates(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt);
  // What the layers make of features, of each row in need of it one behind the other; null where
  // the pass is given up.
  const float* PassLayers(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt);
  void Enter(const DraftHead& head, const std::vector<Wanted>& wanted, const ForwardBatch& batch);
  void AddSilu(const LinearWeights& linear, const float* x, int rows);
  void MakeLogits(const LinearWeights& logits, int rows);
  void Say(const DraftHead& head, const std::vector<Wanted>& wanted, const ForwardBatch& batch);

  std::shared_ptr<const DecoderWeights> weights_;
  const ModelConfig& config_;  // The weights'.
  std::int64_t groups_;
  std::unique_ptr<Model> layers_;
  ForwardBatch layer_batch_;
  Backend* backend_;
  std::vector<std::vector<Wanted>> of_heads_ =
      std::vector<std::vector<Wanted>>(weights_->tensors.heads.size());
  std::vector<Token> tokens_;  // The tokens that a row's head reads.
  Buffer entered_;             // [rows, hidden]: states of all heads.
  Buffer left_;                // [rows that want their states, hidden]
  Buffer read_;     // [a head's rows, (1 + tokens) * hidden], where heads are sequential.
  Buffer states_;   // [a head's rows, hidden]
  Buffer added_;    // [a head's rows, hidden]: what a block adds to them.
  Buffer gated_;    // [a head's rows, 2 * hidden]
  Buffer said_;     // [a head's rows, vocabulary]
  Buffer highest_;  // [a head's rows, groups of the vocabulary]
  Buffer logits_;   // [wanted rows, vocabulary]
  Buffer maxima_;   // [wanted rows, groups of the vocabulary]
};

void HeadsModel::Reserve(std::size_t rows, std::size_t wanted) {
  const std::size_t hidden = config_.hidden;
  const std::size_t vocabulary = config_.vocabulary;
  const std::size_t groups = groups_;
  const std::size_t heads = weights_->tensors.heads.size();
  GrowFloats(entered_, rows * hidden);
  GrowFloats(left_, rows * hidden);
  if (config_.feature.sequential()) GrowFloats(read_, wanted * (1 + heads) * hidden);
  GrowFloats(states_, wanted * hidden);
  GrowFloats(added_, wanted * hidden);
  GrowFloats(gated_, wanted * 2 * hidden);
  GrowFloats(said_, wanted * vocabulary);
  GrowFloats(highest_, wanted * groups);
  GrowFloats(logits_, wanted * vocabulary);
  GrowFloats(maxima_, wanted * groups);
  for (auto& of_head : of_heads_) of_head.reserve(wanted);
  tokens_.reserve(heads);
  if (!config_.layers.empty()) layers_->Reserve(rows, 0);
}

std::size_t HeadsModel::HeadOf(const ForwardRow& row) const {
  const int head =
      config_.feature.sequential() ? row.path.count : config_.parallel.block - 1 - row.block_left;
  FT_CHECK(head >= 0 && head < config_.feature.heads, "head {} of {}", head, config_.feature.heads);
  return head;
}

const float* HeadsModel::PassLayers(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) {
  layer_batch_.Clear();
  layer_batch_.block_tables = batch.block_tables;
  layer_batch_.tail_slots = batch.tail_slots;
  for (const ForwardRow& row : batch.rows) {
    if (row.feature.left != nullptr) continue;  // Its state has passed the layers already.
    ForwardRow& own = layer_batch_.rows.emplace_back(row);
    own.wants_state = row.wants_logits || row.wants_state;
    own.wants_logits = false;
  }
  if (layer_batch_.rows.empty()) return left_.as<float>();  // Nothing is taken from it.
  const bool given_up = layers_->Forward(layer_batch_, kv, interrupt).values == nullptr;
  return given_up ? nullptr : layers_->states();
}

bool HeadsModel::ReadStates(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) {
  const float* passed = nullptr;
  if (!config_.layers.empty()) {
    passed = PassLayers(batch, kv, interrupt);
    if (passed == nullptr) return false;
  }
  float* end = entered_.as<float>();
  float* left = left_.as<float>();
  std::int64_t number = 0;
  for (const ForwardRow& row : batch.rows) {
    if (!row.wants_logits && !row.wants_state) continue;
    const float* const state = end;
    const BFloat16* const kept = row.feature.kept;
    if (row.feature.left != nullptr) {
      end = std::copy_n(row.feature.left, config_.hidden, end);
    } else if (passed != nullptr) {
      end = std::copy_n(passed, config_.hidden, end);
      passed += config_.hidden;
    } else {
      end = kept == nullptr ? std::fill_n(end, config_.hidden, 0.0F)
                            : std::transform(kept, kept + config_.hidden, end, BFloat16ToFloat);
    }
    if (row.wants_state) left = std::copy_n(state, config_.hidden, left);
    if (row.wants_logits) of_heads_[HeadOf(row)].push_back({&row, state, number++});
  }
  return true;
}

// states_ += SiLU(linear(x)).
void HeadsModel::AddSilu(const LinearWeights& linear, const float* x, int rows) {
  float* const added = added_.as<float>();
  float* const gated = gated_.as<float>();
  Multiply(linear, x, rows, backend_, added);
  // x * sigmoid(x) = SiLU.
  LayGatesBeside(added, added, config_.hidden, rows, config_.hidden, gated);
  backend_->GatedMul(Activation::kSigmoid, gated, rows, config_.hidden, added);
  backend_->Add(added, std::int64_t{rows} * config_.hidden, states_.as<float>());
}

// What a head's further blocks read.
void HeadsModel::Enter(const DraftHead& head, const std::vector<Wanted>& wanted,
                       const ForwardBatch& batch) {
  float* to = config_.feature.sequential() ? read_.as<float>() : states_.as<float>();
  for (const Wanted& each : wanted) {
    to = std::copy_n(each.state, config_.hidden, to);
    if (!config_.feature.sequential()) continue;
    const RowPath& path = each.row->path;
    const auto first = batch.path_tokens.begin() + path.begin;
    tokens_.assign(first, first + path.count);
    tokens_.push_back(each.row->token);
    Embed(weights_->tensors.embedding, tokens_, config_.hidden, backend_, to);
    to += std::ssize(tokens_) * config_.hidden;
  }
  if (!config_.feature.sequential()) return;
  const int rows = std::ssize(wanted);
  Multiply(head.entry_residual, read_.as<float>(), rows, backend_, states_.as<float>());
  AddSilu(head.entry, read_.as<float>(), rows);
}

void HeadsModel::MakeLogits(const LinearWeights& logits, int rows) {
  float* const said = said_.as<float>();
  float* highest = highest_.as<float>();
  if (logits.bias.bytes() == 0) {
    backend_->MatMulMaxima(logits.matrix, states_.as<float>(), rows, said, highest);
    return;
  }
  Multiply(logits, states_.as<float>(), rows, backend_, said);
  for (int row = 0; row < rows; ++row) {
    const float* const of_row = said + std::ptrdiff_t{row} * config_.vocabulary;
    for (std::int64_t begin = 0; begin < config_.vocabulary; begin += kLogitGroup) {
      const std::int64_t end = std::min<std::int64_t>(begin + kLogitGroup, config_.vocabulary);
      *highest++ = LargestOf({of_row + begin, of_row + end});
    }
  }
}

void HeadsModel::Say(const DraftHead& head, const std::vector<Wanted>& wanted,
                     const ForwardBatch& batch) {
  const int rows = std::ssize(wanted);
  Enter(head, wanted, batch);
  for (const LinearWeights& block : head.blocks) AddSilu(block, states_.as<float>(), rows);
  MakeLogits(head.logits, rows);
  const float* said = said_.as<float>();
  const float* highest = highest_.as<float>();
  for (const Wanted& each : wanted) {
    std::copy_n(said, config_.vocabulary, logits_.as<float>() + each.number * config_.vocabulary);
    std::copy_n(highest, groups_, maxima_.as<float>() + each.number * groups_);
    said += config_.vocabulary;
    highest += groups_;
  }
}

Logits HeadsModel::Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) {
  const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
  // At least one row's worth, so that a pass without wanted rows is told from an interrupted one.
  Reserve(std::max<std::size_t>(batch.rows.size(), 1), Size(std::max<std::ptrdiff_t>(wanted, 1)));
  for (auto& of_head : of_heads_) of_head.clear();
  if (!ReadStates(batch, kv, interrupt)) return {};
  for (std::size_t i = 0; i < of_heads_.size(); ++i) {
    if (of_heads_[i].empty()) continue;
    if (interrupt.Raised()) return {};
    Say(weights_->tensors.heads[i], of_heads_[i], batch);
  }
  return {logits_.as<float>(), maxima_.as<float>()};
}

}  // namespace

std::unique_ptr<Model> MakeHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                      std::unique_ptr<Model> layers, Backend* backend) {
  return std::make_unique<HeadsModel>(std::move(weights), std::move(layers), backend);
}

}  // namespace foretoken
