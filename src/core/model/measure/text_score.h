#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/backend/device.h"
#include "core/model/model.h"

namespace foretoken {

/// How a text of tokens is cut into windows, each read as a text of its own, and which of their
/// tokens are scored: how likely the model holds them after all that the window has before them.
struct TextWindows {
  int length = 0;          ///< Tokens of a window.
  int step = 0;            ///< From where one begins to where the next does.
  int scored = 0;          ///< The last so many of a window are scored; fewer than `length`.
  std::int64_t count = 0;  ///< What is behind the last is left out.

  /// Windows of `length` tokens, or one of all where the text has fewer. Without a stride, or 0,
  /// they lie side by side and the second half of each is scored, so that no token has less than
  /// half a window before it; with one they begin `stride` tokens apart and score as many. Refuses
  /// texts of fewer than two tokens and strides that leave nothing before a scored token.
  static Result<TextWindows> Cut(std::int64_t tokens, int length, int stride);

  std::int64_t Begin(std::int64_t window) const { return window * step; }
  std::int64_t scored_tokens() const { return count * scored; }
};

/// The mean of numbers and its standard error, as if they were independent; summed up in the order
/// in which they come.
class Mean {
 public:
  void Add(double number);
  std::int64_t count() const { return count_; }
  double value() const { return value_; }
  /// NaN of fewer than two numbers.
  double standard_error() const;

 private:
  std::int64_t count_ = 0;
  double value_ = 0;
  double squares_ = 0;  // The sum of squared distances from the mean.
};

/// exp of a mean, and its standard error to first order.
double ExpOf(const Mean& mean);
double ExpErrorOf(const Mean& mean);

/// What was found of the scored tokens. Losses are -ln of the probability of the text's token.
struct TextScore {
  std::int64_t rows = 0;  ///< Read by the model, scored or not.
  Mean loss;              ///< exp of it is the perplexity.
  // Against the reference, where there is one:
  Mean reference_loss;
  Mean excess;              ///< The loss less the reference's.
  Mean divergence;          ///< Kullback-Leibler, of the model from the reference, in nats.
  std::int64_t agreed = 0;  ///< Tokens before which both hold the same one likeliest.
};

/// Scores a text by a model, and by a `reference` of the same vocabulary in the same passes. Passes
/// are full, with rows of several windows where these are short, and no logits are kept: memory
/// does not depend on the text. The score is the same, bit for bit, for any number of cores.
/// Borrows all that it is given; driven by the owner thread of the device, whose models they are.
class TextScorer {
 public:
  /// Each window's first token is read as `begin`, where that is given. `reference` may be null.
  TextScorer(Device* device, Model* model, Model* reference, std::span<const Token> tokens,
             std::optional<Token> begin, const TextWindows& windows);

  bool done() const { return window_ == windows_.count; }
  /// The next pass. An error where a scored token has no probability, since logits are not finite.
  Status Pass();

  const TextScore& score() const { return score_; }

 private:
  // A model and the windows that it is reading.
  struct Reader {
    Model* model;
    KvStore kv;
  };
  // What one row of logits says of the token after it.
  struct RowScore {
    double loss = 0;
    double reference_loss = 0;
    double divergence = 0;
    bool agreed = false;
  };

  void FillBatch();
  RowScore ScoreOf(std::size_t row, const float* logits, const float* reference) const;

  Device* device_;
  std::span<const Token> tokens_;
  std::optional<Token> begin_;
  TextWindows windows_;
  std::vector<std::int32_t> blocks_;  // 0, 1, 2 ...: those of the windows that a pass may touch.
  std::int64_t blocks_of_window_ = 0;
  std::int64_t windows_in_kv_ = 0;
  std::vector<Reader> readers_;  // The model, then the reference.

  std::int64_t window_ = 0;  // The window of the next row.
  int position_ = 0;         // The place of the next row in its window.
  ForwardBatch batch_;
  std::vector<std::int64_t> targets_;  // Which token of the text each row with logits predicts.
  std::vector<RowScore> row_scores_;
  TextScore score_;
};

}  // namespace foretoken
