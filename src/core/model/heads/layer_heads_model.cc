#include "base/numbers/integers.h"
#include "core/model/heads/heads_models.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/model/decoder/float_buffer.h"

namespace foretoken {
namespace {

class LayerHeadsModel final : public Model {
 public:
  LayerHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                  std::vector<std::unique_ptr<Model>> heads, Backend* backend)
      : weights_(std::move(weights)),
        config_(weights_->config()),
        heads_(std::move(heads)),
        backend_(backend) {}

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return *backend_; }
  std::size_t weight_bytes() const override { return weights_->bytes_of_pass(); }
  const float* states() const override { return nullptr; }  // No row leaves any.
  void Reserve(std::size_t rows, std::size_t wanted) override;
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override;

 private:
  // A row of logits whose state is one that a head's pass leaves.
  struct Taken {
    std::int64_t row;
    std::int64_t state;
  };

  bool IsOf(const ForwardRow& row, int head) const;
  void Collect(const ForwardBatch& batch, int head);

  std::shared_ptr<const DecoderWeights> weights_;
  const ModelConfig& config_;  // The weights'.
  std::vector<std::unique_ptr<Model>> heads_;
  Backend* backend_;
  ForwardBatch of_head_;      // The rows that a head computes of a pass.
  std::vector<Taken> taken_;  // The rows of `of_head_` that are taken.
  Buffer states_;             // [wanted rows, hidden]
  Buffer logits_;             // [wanted rows, vocabulary]
  Buffer maxima_;             // [wanted rows, groups of the vocabulary]
};

void LayerHeadsModel::Reserve(std::size_t rows, std::size_t wanted) {
  for (const auto& head : heads_) head->Reserve(rows, 0);
  of_head_.rows.reserve(rows);
  taken_.reserve(wanted);
  GrowFloats(states_, wanted * config_.hidden);
  GrowFloats(logits_, wanted * config_.vocabulary);
  GrowFloats(maxima_, wanted * Logits::Groups(config_.vocabulary));
}

bool LayerHeadsModel::IsOf(const ForwardRow& row, int head) const {
  const int number = config_.parallel.block - 1 - row.block_left;
  FT_CHECK(number >= 0 && number < config_.layer_count(), "head {}", number);
  return number == head;
}

// The rows of a head: of several at one position, which are the same, the first.
void LayerHeadsModel::Collect(const ForwardBatch& batch, int head) {
  of_head_.rows.clear();
  taken_.clear();
  std::int64_t row = 0;
  std::int64_t states = 0;
  for (const ForwardRow& each : batch.rows) {
    const std::int64_t number = each.wants_logits ? row++ : 0;
    if (each.wants_logits && !IsOf(each, head)) continue;
    if (each.feature.kept == nullptr) continue;
    const bool same = !of_head_.rows.empty() && of_head_.rows.back().place.slot == each.place.slot;
    if (!same) {
      of_head_.rows.push_back(each);
      of_head_.rows.back().wants_logits = false;
      of_head_.rows.back().wants_state = false;
      of_head_.rows.back().block_left = 0;
    }
    if (!each.wants_logits) continue;
    if (!std::exchange(of_head_.rows.back().wants_state, true)) ++states;
    taken_.push_back({number, states - 1});
  }
}

Logits LayerHeadsModel::Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) {
  const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
  // At least one row's worth, so that a pass without wanted rows is told from an interrupted one.
  Reserve(batch.rows.size(), Size(std::max<std::ptrdiff_t>(wanted, 1)));
  float* const states = states_.as<float>();
  std::fill_n(states, wanted * config_.hidden, 0.0F);
  of_head_.block_tables = batch.block_tables;
  of_head_.tail_slots = batch.tail_slots;
  for (int head = 0; head < config_.layer_count(); ++head) {
    Collect(batch, head);
    if (of_head_.rows.empty()) continue;
    Model& layer = *heads_[head];
    if (layer.Forward(of_head_, kv, interrupt).values == nullptr) return {};
    for (const Taken& each : taken_) {
      std::copy_n(layer.states() + each.state * config_.hidden, config_.hidden,
                  states + each.row * config_.hidden);
    }
  }
  if (wanted > 0) {
    if (interrupt.Raised()) return {};
    backend_->MatMulMaxima(weights_->head(), states, static_cast<int>(wanted), logits_.as<float>(),
                           maxima_.as<float>());
  }
  return {logits_.as<float>(), maxima_.as<float>()};
}

}  // namespace

std::unique_ptr<Model> MakeLayerHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                           std::vector<std::unique_ptr<Model>> heads,
                                           Backend* backend) {
  return std::make_unique<LayerHeadsModel>(std::move(weights), std::move(heads), backend);
}

}  // namespace foretoken
