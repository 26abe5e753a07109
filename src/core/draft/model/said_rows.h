#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/backend/backend.h"
#include "core/model/model.h"

namespace foretoken {

/// What a draft's pass says after a node: logits, and where the draft has such a head the logarithm
/// of the odds that its first token there is accepted.
struct SaidRow {
  Logits logits;
  std::optional<float> confidence;
};

/// What the latest pass of a draft says after nodes of trees, asked for some nodes at a time: so
/// that where it depends on the tokens before (ModelConfig::markov) it is computed for all of them
/// together. Belongs to one thread.
class SaidRows {
 public:
  explicit SaidRows(Model* model) : model_(model) {}

  /// Makes room for so many nodes asked for at a time.
  void Reserve(std::size_t nodes) { rows_.reserve(nodes); }

  /// Begins with a pass over `batch` that has just been made. Nothing is asked for yet.
  void Begin(const ForwardBatch& batch, Logits logits) {
    pass_ = logits;
    pass_rows_ = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
    Clear();
  }
  void Clear() {
    rows_.clear();
    followed_ = {};
  }

  /// Asks for what the pass says after a node `depth` levels below the one after which row `first`
  /// of its logits says a token. `path` are the tokens to the node from below the tree's root,
  /// whose own token is `root`.
  void Ask(std::int64_t first, int depth, Token root, std::span<const Token> path) {
    PathRow& row = rows_.emplace_back();
    row.first = first;
    const auto tokens = Size(depth) + 1;
    if (tokens > path.size()) row.path.push_back(root);
    for (const Token token : path.last(std::min(tokens, path.size()))) row.path.push_back(token);
    FT_CHECK(row.row() < pass_rows_, "row {} of {}", row.row(), pass_rows_);
  }

  /// Computes what was asked for.
  void Answer() {
    if (model_->config().markov.there()) followed_ = model_->Follow(rows_);
  }

  /// The answer to question number i, valid until the next Answer or pass.
  SaidRow At(std::size_t i) const {
    const std::int64_t vocabulary = model_->config().vocabulary;
    if (followed_.logits.values == nullptr) {
      return {.logits = pass_.Row(rows_[i].row(), vocabulary), .confidence = {}};
    }
    SaidRow row{.logits = followed_.logits.Row(static_cast<std::int64_t>(i), vocabulary),
                .confidence = {}};
    if (followed_.confidence != nullptr) row.confidence = followed_.confidence[i];
    return row;
  }

 private:
  Model* model_;
  Logits pass_;
  std::int64_t pass_rows_ = 0;
  PathLogits followed_;
  std::vector<PathRow> rows_;
};

}  // namespace foretoken
