#include "model/heads/heads_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/decoder/float_buffer.h"

namespace foretoken {
namespace {

class HeadsModel final : public Model {
 public:
  HeadsModel(std::shared_ptr<const DecoderWeights> weights, Backend* backend)
      : weights_(std::move(weights)),
        config_(weights_->config()),
        groups_(Logits::Groups(config_.vocabulary)),
        backend_(backend) {}

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return *backend_; }
  std::size_t weight_bytes() const override { return weights_->bytes_of_pass(); }
  const float* states() const override { return nullptr; }  // No row leaves any.
  void Reserve(std::size_t rows, std::size_t wanted) override;

  // Head by head, whose weights are then read once for all sequences.
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override;

 private:
  // A row that wants logits, which are its `number`-th.
  struct Wanted {
    const ForwardRow* row;
    std::int64_t number;
  };

  int HeadOf(const ForwardRow& row) const;
  void Read(const std::vector<Wanted>& wanted);
  void Say(const DraftHead& head, const std::vector<Wanted>& wanted);

  std::shared_ptr<const DecoderWeights> weights_;
  const ModelConfig& config_;  // The weights'.
  std::int64_t groups_;
  Backend* backend_;
  std::vector<std::vector<Wanted>> of_heads_ =
      std::vector<std::vector<Wanted>>(weights_->tensors.heads.size());
  Buffer states_;   // [a head's rows, hidden]
  Buffer added_;    // [a head's rows, hidden]: what a block adds to them.
  Buffer gated_;    // [a head's rows, 2 * hidden]
  Buffer said_;     // [a head's rows, vocabulary]
  Buffer highest_;  // [a head's rows, groups of the vocabulary]
  Buffer logits_;   // [wanted rows, vocabulary]
  Buffer maxima_;   // [wanted rows, groups of the vocabulary]
};

void HeadsModel::Reserve(std::size_t /*rows*/, std::size_t wanted) {
  const auto hidden = static_cast<std::size_t>(config_.hidden);
  const auto vocabulary = static_cast<std::size_t>(config_.vocabulary);
  const auto groups = static_cast<std::size_t>(groups_);
  GrowFloats(states_, wanted * hidden);
  GrowFloats(added_, wanted * hidden);
  GrowFloats(gated_, wanted * 2 * hidden);
  GrowFloats(said_, wanted * vocabulary);
  GrowFloats(highest_, wanted * groups);
  GrowFloats(logits_, wanted * vocabulary);
  GrowFloats(maxima_, wanted * groups);
  for (auto& of_head : of_heads_) of_head.reserve(wanted);
}

int HeadsModel::HeadOf(const ForwardRow& row) const {
  const int head = config_.parallel.block - 1 - row.block_left;
  FT_CHECK(head >= 0 && head < config_.parallel.block, "{} rows follow in a block of {}",
           row.block_left, config_.parallel.block);
  return head;
}

void HeadsModel::Read(const std::vector<Wanted>& wanted) {
  float* to = states_.as<float>();
  for (const Wanted& each : wanted) {
    const BFloat16* const kept = each.row->feature.kept;
    to = kept == nullptr ? std::fill_n(to, config_.hidden, 0.0F)
                         : std::transform(kept, kept + config_.hidden, to, BFloat16ToFloat);
  }
}

void HeadsModel::Say(const DraftHead& head, const std::vector<Wanted>& wanted) {
  const int rows = static_cast<int>(std::ssize(wanted));
  float* const states = states_.as<float>();
  float* const added = added_.as<float>();
  float* const gated = gated_.as<float>();
  Read(wanted);
  for (const LinearWeights& block : head.blocks) {
    Multiply(block, states, rows, backend_, added);
    // x * sigmoid(x) = SiLU.
    LayGatesBeside(added, added, config_.hidden, rows, config_.hidden, gated);
    backend_->GatedMul(Activation::kSigmoid, gated, rows, config_.hidden, added);
    backend_->Add(added, std::int64_t{rows} * config_.hidden, states);
  }
  const float* said = said_.as<float>();
  const float* highest = highest_.as<float>();
  backend_->MatMulMaxima(head.logits, states, rows, said_.as<float>(), highest_.as<float>());
  for (const Wanted& each : wanted) {
    std::copy_n(said, config_.vocabulary, logits_.as<float>() + each.number * config_.vocabulary);
    std::copy_n(highest, groups_, maxima_.as<float>() + each.number * groups_);
    said += config_.vocabulary;
    highest += groups_;
  }
}

Logits HeadsModel::Forward(const ForwardBatch& batch, KvStore& /*kv*/, Interrupt interrupt) {
  const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
  // At least one row's worth, so that a pass without wanted rows is told from an interrupted one.
  Reserve(batch.rows.size(), static_cast<std::size_t>(std::max<std::ptrdiff_t>(wanted, 1)));
  for (auto& of_head : of_heads_) of_head.clear();
  std::int64_t number = 0;
  for (const ForwardRow& row : batch.rows) {
    if (!row.wants_logits) continue;
    of_heads_[static_cast<std::size_t>(HeadOf(row))].push_back({&row, number++});
  }
  for (std::size_t i = 0; i < of_heads_.size(); ++i) {
    if (of_heads_[i].empty()) continue;
    if (interrupt.Raised()) return {};
    Say(weights_->tensors.heads[i], of_heads_[i]);
  }
  return {logits_.as<float>(), maxima_.as<float>()};
}

}  // namespace

std::unique_ptr<Model> MakeHeadsModel(std::shared_ptr<const DecoderWeights> weights,
                                      Backend* backend) {
  return std::make_unique<HeadsModel>(std::move(weights), backend);
}

}  // namespace foretoken
