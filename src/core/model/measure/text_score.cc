#include "core/model/measure/text_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/numbers/portable_math.h"

namespace foretoken {
namespace {

// Terms are written a strip at a time, by a loop of its own, which compilers vectorise.
constexpr int kStrip = 128;

// What makes probabilities of a row of logits: p = exp(logit - log_sum).
struct RowFacts {
  Token likeliest = 0;  // The first of them.
  double log_sum = 0;   // NaN or infinite where the logits are not numbers.
};

// The sum of term(i) over a vocabulary, in a fixed order.
template <typename Term>
double SumOver(int vocabulary, const Term& term) {
  std::array<double, kStrip> sums{};
  int begin = 0;
  for (; begin + kStrip <= vocabulary; begin += kStrip) {
    for (int i = 0; i < kStrip; ++i) sums[i] += term(begin + i);
  }
  for (int i = 0; begin + i < vocabulary; ++i) sums[i] += term(begin + i);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

RowFacts FactsOf(const float* logits, int vocabulary) {
  const auto likeliest = static_cast<Token>(std::max_element(logits, logits + vocabulary) - logits);
  const double most = logits[likeliest];
  const double sum =
      SumOver(vocabulary, [=](int i) { return PortableExpNonPositive(double{logits[i]} - most); });
  return {likeliest, std::isfinite(sum) ? most + PortableLog(sum) : sum};
}

// sum of p (ln p - ln q), where `from` gives p and `to` gives q.
double Divergence(const float* from, double from_log_sum, const float* to, double to_log_sum,
                  int vocabulary) {
  const double difference = SumOver(vocabulary, [=](int i) {
    const double p = PortableExpNonPositive(double{from[i]} - from_log_sum);
    return p * (double{from[i]} - double{to[i]});
  });
  return difference + to_log_sum - from_log_sum;
}

}  // namespace

Result<TextWindows> TextWindows::Cut(std::int64_t tokens, int length, int stride) {
  if (tokens < 2) {
    return Invalid(
        "the text has {} token{}, but what is scored is a token after others: give a longer text",
        tokens, tokens == 1 ? "" : "s");
  }
  TextWindows windows;
  windows.length = static_cast<int>(std::min<std::int64_t>(tokens, length));
  if (stride >= windows.length) {
    return Invalid(
        "a stride of {} leaves nothing before the scored tokens of a window of {}: it must be less",
        stride, windows.length);
  }
  windows.step = stride > 0 ? stride : windows.length;
  windows.scored = stride > 0 ? stride : std::max(1, windows.length - windows.length / 2 - 1);
  windows.count = 1 + (tokens - windows.length) / windows.step;
  return windows;
}

void Mean::Add(double number) {
  ++count_;
  const double distance = number - value_;
  value_ += distance / static_cast<double>(count_);
  squares_ += distance * (number - value_);
}

double Mean::standard_error() const {
  if (count_ < 2) return std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<double>(count_);
  return std::sqrt(squares_ / (count - 1) / count);
}

double ExpOf(const Mean& mean) { return PortableExp(mean.value()); }
double ExpErrorOf(const Mean& mean) { return ExpOf(mean) * mean.standard_error(); }

TextScorer::TextScorer(Device* device, Model* model, Model* reference,
                       std::span<const Token> tokens, std::optional<Token> begin,
                       const TextWindows& windows)
    : device_(device), tokens_(tokens), begin_(begin), windows_(windows) {
  FT_CHECK(windows.count > 0 && windows.scored < windows.length &&
               windows.Begin(windows.count - 1) + windows.length <= std::ssize(tokens),
           "{} windows of {} in {} tokens", windows.count, windows.length, tokens.size());
  // The last token of a window is predicted, and predicts nothing.
  const int rows = windows.length - 1;
  blocks_of_window_ = BlocksFor(rows);
  windows_in_kv_ =
      std::min<std::int64_t>(windows.count, static_cast<std::int64_t>(kPassRows) / rows + 2);
  blocks_.resize(Size(windows_in_kv_ * blocks_of_window_));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  for (Model* reader : {model, reference}) {
    if (reader == nullptr) continue;
    FT_CHECK(reader->config().vocabulary == model->config().vocabulary &&
             reader->config().max_positions >= windows.length);
    readers_.push_back(
        {reader, reader->backend().AllocateKv(reader->KvShapeFor(std::ssize(blocks_)))});
  }
}

// The next rows, of the window at hand and those after it. A window's blocks are taken by a later
// one when it has been read to its end.
void TextScorer::FillBatch() {
  batch_.Clear();
  targets_.clear();
  while (batch_.rows.size() < kPassRows && !done()) {
    const std::int64_t first_block = window_ % windows_in_kv_ * blocks_of_window_;
    const std::int64_t begin = windows_.Begin(window_);
    const auto sequence = static_cast<std::int32_t>(batch_.block_tables.size());
    batch_.block_tables.push_back(blocks_.data() + first_block);
    for (; position_ < windows_.length - 1 && batch_.rows.size() < kPassRows; ++position_) {
      const bool first = position_ == 0 && begin_.has_value();
      const bool scored = position_ + 1 >= windows_.length - windows_.scored;
      if (scored) targets_.push_back(begin + position_ + 1);
      batch_.rows.push_back(
          {.token = first ? *begin_ : tokens_[begin + position_],
           .place = {.position = position_,
                     .slot = static_cast<std::int32_t>(first_block * kBlockSize + position_),
                     .sequence = sequence,
                     .trunk_length = position_ + 1,
                     .tail_begin = 0},
           .wants_logits = scored});
    }
    if (position_ < windows_.length - 1) return;
    position_ = 0;
    ++window_;
  }
}

TextScorer::RowScore TextScorer::ScoreOf(std::size_t row, const float* logits,
                                         const float* reference) const {
  const int vocabulary = readers_[0].model->config().vocabulary;
  const Token token = tokens_[targets_[row]];
  const std::size_t offset = row * vocabulary;
  logits += offset;
  const RowFacts facts = FactsOf(logits, vocabulary);
  RowScore score{.loss = facts.log_sum - double{logits[token]}};
  if (reference == nullptr) return score;
  reference += offset;
  const RowFacts other = FactsOf(reference, vocabulary);
  score.reference_loss = other.log_sum - double{reference[token]};
  score.divergence = Divergence(reference, other.log_sum, logits, facts.log_sum, vocabulary);
  score.agreed = facts.likeliest == other.likeliest;
  return score;
}

Status TextScorer::Pass() {
  FillBatch();
  const float* logits = readers_[0].model->Forward(batch_, readers_[0].kv).values;
  const float* reference = nullptr;
  if (readers_.size() > 1) reference = readers_[1].model->Forward(batch_, readers_[1].kv).values;
  row_scores_.resize(targets_.size());
  device_->pool().Share(std::ssize(targets_), 1, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::size_t row = begin; row < Size(end); ++row) {
      row_scores_[row] = ScoreOf(row, logits, reference);
    }
  });
  score_.rows += std::ssize(batch_.rows);
  for (std::size_t row = 0; row < targets_.size(); ++row) {
    const RowScore& found = row_scores_[row];
    if (!std::isfinite(found.loss + found.reference_loss + found.divergence)) {
      return Invalid(
          "token {} of the text has no probability: the logits before it are not all finite "
          "numbers, so some of the model's weights are none either",
          targets_[row]);
    }
    score_.loss.Add(found.loss);
    if (reference == nullptr) continue;
    score_.reference_loss.Add(found.reference_loss);
    score_.excess.Add(found.loss - found.reference_loss);
    score_.divergence.Add(found.divergence);
    score_.agreed += found.agreed ? 1 : 0;
  }
  return {};
}

}  // namespace foretoken
