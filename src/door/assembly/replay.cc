#include "door/assembly/replay.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/sampling/history.h"
#include "core/sampling/sampler.h"

namespace foretoken {
namespace {

constexpr std::size_t kRowsAtOnce = 128;  // Rows whose logits are computed and kept at once.

// The score of `token` among all.
Candidate ScoreOf(Token token, std::span<const Candidate> all) {
  const auto found = std::ranges::find(all, token, &Candidate::token);
  return found != all.end() ? *found : Candidate{token, -std::numeric_limits<double>::infinity()};
}

std::optional<Deviation> ReadReplay(const LoadedModel& loaded, const Replay& replay) {
  Model& model = *loaded.model;
  const int vocabulary = model.config().vocabulary;
  Sampler sampler(loaded.backend.get(), vocabulary);
  const int length = replay.prompt.size() + replay.tokens.size();
  TokenHistory history(vocabulary, std::min(replay.sampling->penalty_window, length));
  history.AddPrompt(replay.prompt);
  if (replay.sampling->constraint != nullptr) {
    history.Constrain(*replay.sampling->constraint, replay.drops_space);
  }
  std::vector<Token> text(replay.prompt.begin(), replay.prompt.end());
  text.insert(text.end(), replay.tokens.begin(), replay.tokens.end());
  const std::size_t first = replay.prompt.size() - 1;  // The row that chooses the first token.
  const std::size_t rows = text.size() - 1;
  const std::int64_t blocks = BlocksFor(static_cast<std::int64_t>(rows));
  KvStore kv = model.backend().AllocateKv(model.KvShapeFor(blocks));
  std::vector<std::int32_t> table;
  for (std::int32_t block = 0; block < blocks; ++block) table.push_back(block);
  ForwardBatch batch;
  for (std::size_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const std::size_t end = std::min(rows, begin + kRowsAtOnce);
    batch.Clear();
    batch.block_tables.push_back(table.data());
    for (std::size_t row = begin; row < end; ++row) {
      const auto position = static_cast<std::int32_t>(row);
      batch.rows.push_back({.token = text[row],
                            .place = {position, position, 0, position + 1, 0},
                            .wants_logits = row >= first,
                            .adapter = replay.adapter});
    }
    const Logits logits = model.Forward(batch, kv);
    for (std::size_t row = std::max(begin, first); row < end; ++row) {
      const Logits own =
          logits.Row(static_cast<std::int64_t>(row - std::max(begin, first)), vocabulary);
      const Token written = text[row + 1];
      const Candidate chosen = sampler.Choose(own, *replay.sampling, history, {}, row + 1);
      if (chosen.token != written) {
        std::vector<Candidate> all(vocabulary);
        all.resize(sampler.Rank(own, *replay.sampling, history, {}, row + 1, all));
        return Deviation{row - first, ScoreOf(written, all), chosen};
      }
      history.AddOutput(written);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Deviation> FindDeviation(const LoadedModel& loaded, const Replay& replay) {
  FT_CHECK(!replay.prompt.empty());
  if (replay.tokens.empty()) return std::nullopt;
  return loaded.device->Run([&] { return ReadReplay(loaded, replay); });
}

}  // namespace foretoken
