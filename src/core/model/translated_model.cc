#include "core/model/translated_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class TranslatedModel final : public Model {
 public:
  TranslatedModel(std::unique_ptr<Model> model, std::shared_ptr<const Translation> translation)
      : model_(std::move(model)),
        translation_(std::move(translation)),
        config_(model_->config()),
        own_vocabulary_(config_.vocabulary) {
    FT_CHECK(translation_->read.size() == translation_->said.size());
    config_.vocabulary = Int(translation_->said.size());
    // What stands for an unknown token may be no token of the other's: it is the one behind them.
    mask_ = config_.parallel.mask_token;
    if (mask_ >= 0) config_.parallel.mask_token = config_.vocabulary;
    config_.bos = translation_->bos;
    config_.eos = translation_->eos;
    for (Token token = 0; token < config_.vocabulary; ++token) {
      const Token own = translation_->said[token];
      FT_CHECK(own < own_vocabulary_, "token {} of {}", own, own_vocabulary_);
      if (own >= 0) said_.push_back({token, own});
    }
  }

  const ModelConfig& config() const override { return config_; }
  Backend& backend() const override { return model_->backend(); }
  std::size_t weight_bytes() const override { return model_->weight_bytes(); }
  int adapters() const override { return model_->adapters(); }
  const float* states() const override { return model_->states(); }

  void Reserve(std::size_t rows, std::size_t wanted) override {
    model_->Reserve(rows, wanted);
    batch_.rows.reserve(rows);
    said_rows_.GrowTo(wanted, config_.vocabulary);
    if (config_.markov.there()) followed_.GrowTo(wanted, config_.vocabulary);
  }

  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override {
    const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
    // At least one row's worth, so that a pass without wanted rows is told from an interrupted one.
    Reserve(batch.rows.size(), Size(std::max<std::ptrdiff_t>(wanted, 1)));
    batch_ = batch;
    for (ForwardRow& row : batch_.rows) row.token = Read(row.token);
    for (Token& token : batch_.path_tokens) token = Read(token);
    const Logits own = model_->Forward(batch_, kv, interrupt);
    if (own.values == nullptr) return {};
    return TranslateRows(own, wanted, &said_rows_);
  }

  PathLogits Follow(std::span<const PathRow> rows) override {
    paths_.assign(rows.begin(), rows.end());
    for (PathRow& row : paths_) {
      for (Token& token : row.path) token = Read(token);
    }
    PathLogits said = model_->Follow(paths_);
    followed_.GrowTo(rows.size(), config_.vocabulary);
    if (said.logits.values == nullptr) return {};
    said.logits = TranslateRows(said.logits, std::ssize(rows), &followed_);
    return said;
  }

 private:
  struct Said {
    Token token;
    Token own;
  };
  struct Rows {
    std::vector<float> logits;  // [rows, vocabulary], -inf where nothing is written.
    std::vector<float> maxima;  // [rows, groups of the vocabulary]

    void GrowTo(std::size_t rows, int vocabulary) {
      const std::size_t numbers = rows * Size(vocabulary);
      if (logits.size() < numbers) logits.resize(numbers, kMinusInfinity);
      const auto groups = rows * Size(Logits::Groups(vocabulary));
      if (maxima.size() < groups) maxima.resize(groups);
    }
  };

  Token Read(Token token) const {
    return token == config_.vocabulary ? mask_ : translation_->read[token];
  }

  Logits TranslateRows(const Logits& own, std::int64_t count, Rows* rows) const {
    for (std::int64_t row = 0; row < count; ++row) TranslateRow(own, row, rows);
    return {rows->logits.data(), rows->maxima.data()};
  }

  void TranslateRow(const Logits& own, std::int64_t row, Rows* rows) const {
    const float* from = own.values + row * own_vocabulary_;
    float* to = rows->logits.data() + row * config_.vocabulary;
    const std::int64_t groups = Logits::Groups(config_.vocabulary);
    float* maxima = rows->maxima.data() + row * groups;
    auto said = said_.begin();
    for (std::int64_t group = 0; group < groups; ++group) {
      float most = kMinusInfinity;
      for (; said != said_.end() && said->token / kLogitGroup == group; ++said) {
        const float logit = from[said->own];
        to[said->token] = logit;
        most = logit > most ? logit : most;  // Never a NaN.
      }
      maxima[group] = most;
    }
  }

  std::unique_ptr<Model> model_;
  std::shared_ptr<const Translation> translation_;
  ModelConfig config_;
  std::int64_t own_vocabulary_;
  Token mask_ = -1;         // ParallelSpec::mask_token of the model.
  std::vector<Said> said_;  // What has a logit, in order of `token`.
  ForwardBatch batch_;
  std::vector<PathRow> paths_;
  Rows said_rows_;
  Rows followed_;
};

}  // namespace

std::unique_ptr<Model> Translate(std::unique_ptr<Model> model,
                                 std::shared_ptr<const Translation> translation) {
  return std::make_unique<TranslatedModel>(std::move(model), std::move(translation));
}

}  // namespace foretoken
