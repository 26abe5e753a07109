#include "core/model/heads/markov_mixer.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/integers.h"
#include "base/numbers/portable_math.h"
#include "core/model/decoder/float_buffer.h"

namespace foretoken {
namespace {

float Sigmoid(double x) { return static_cast<float>(1 / (1 + PortableExp(-x))); }
// Where the exponential has outgrown its result's precision, 1 or -1.
float Tanh(double x) {
  return static_cast<float>(1 - 2 / (1 + PortableExp(2 * std::clamp(x, -20.0, 20.0))));
}

// Sets the maxima of rows of logits, as Logits describes them.
void SetMaxima(const float* logits, std::size_t rows, std::int64_t vocabulary, float* maxima) {
  for (std::size_t row = 0; row < rows; ++row, logits += vocabulary) {
    for (std::int64_t begin = 0; begin < vocabulary; begin += kLogitGroup) {
      const std::int64_t end = std::min<std::int64_t>(vocabulary, begin + kLogitGroup);
      float most = -INFINITY;
      for (std::int64_t i = begin; i < end; ++i) most = logits[i] > most ? logits[i] : most;
      *maxima++ = most;
    }
  }
}

}  // namespace

void MarkovMixer::GrowTo(std::size_t wanted, const ModelConfig& config) {
  if (!config.markov.there()) return;
  GrowFloats(states_, wanted * config.hidden);
  Grow(wanted, config);
}

void MarkovMixer::Grow(std::size_t rows, const ModelConfig& config) {
  const std::size_t rank = config.markov.rank;
  GrowFloats(embedded_, rows * rank);
  GrowFloats(latents_, rows * rank);
  GrowFloats(inputs_, rows * (2 * rank + Size(config.hidden)));
  GrowFloats(made_, rows * 3 * rank);
  GrowFloats(cells_, rows * rank);
  GrowFloats(logits_, rows * config.vocabulary);
  GrowFloats(maxima_, rows * Logits::Groups(config.vocabulary));
  GrowFloats(confidence_, rows);
  tokens_.reserve(rows);
  active_.reserve(rows);
}

void MarkovMixer::Keep(const ModelConfig& config, const float* states, std::int64_t first,
                       std::int64_t count) {
  std::copy_n(states, count * config.hidden, states_.as<float>() + first * config.hidden);
}

const float* MarkovMixer::StateOf(const ModelConfig& config, std::int64_t row) const {
  return states_.as<float>() + row * config.hidden;
}

const float* MarkovMixer::LayStates(const ModelConfig& config, std::span<const PathRow> rows,
                                    bool tokens) {
  const int rank = config.markov.rank;
  float* to = inputs_.as<float>();
  const float* embedded = embedded_.as<float>();
  for (const PathRow& row : rows) {
    to = std::copy_n(StateOf(config, row.row()), config.hidden, to);
    if (tokens) to = std::copy_n(embedded, rank, to);
    embedded += rank;
  }
  return inputs_.as<float>();
}

void MarkovMixer::Gate(const ModelConfig& config, const MarkovWeights& weights,
                       std::span<const PathRow> rows, Backend* backend) {
  float* const gates = made_.as<float>();
  Multiply(weights.gate, LayStates(config, rows, /*tokens=*/true), Int(rows.size()), backend,
           gates);
  const std::size_t count = rows.size() * Size(config.markov.rank);
  for (std::size_t i = 0; i < count; ++i) {
    latents_.as<float>()[i] = Sigmoid(gates[i]) * embedded_.as<float>()[i];
  }
}

// Token by token of all paths at once: what a cell makes depends on nothing but its own path.
void MarkovMixer::Unroll(const ModelConfig& config, const MarkovWeights& weights,
                         std::span<const PathRow> rows, Backend* backend) {
  const std::size_t rank = config.markov.rank;
  float* const cells = cells_.as<float>();
  float* const embedded = embedded_.as<float>();
  std::fill_n(cells, rows.size() * rank, 0.0F);
  for (std::size_t step = 0;; ++step) {
    active_.clear();
    tokens_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (step >= rows[i].path.size()) continue;
      active_.push_back(i);
      tokens_.push_back(rows[i].path[step]);
    }
    if (active_.empty()) return;
    Embed(weights.tokens, tokens_, config.markov.rank, backend, embedded);
    float* to = inputs_.as<float>();
    for (std::size_t n = 0; n < active_.size(); ++n) {
      const std::size_t i = active_[n];
      to = std::copy_n(cells + i * rank, rank, to);
      to = std::copy_n(embedded + n * rank, rank, to);
      const auto row = rows[i].first + static_cast<std::int64_t>(step);
      to = std::copy_n(StateOf(config, row), config.hidden, to);
    }
    const float* made = made_.as<float>();
    Multiply(weights.cell, inputs_.as<float>(), Int(active_.size()), backend, made_.as<float>());
    for (const std::size_t i : active_) {
      const bool last = step + 1 == rows[i].path.size();
      for (std::size_t r = 0; r < rank; ++r) {
        float& cell = cells[i * rank + r];
        const float kept = Sigmoid(made[r]);
        cell = kept * cell + (1 - kept) * Tanh(made[rank + r]);
        if (last) latents_.as<float>()[i * rank + r] = Tanh(made[2 * rank + r]);
      }
      made += 3 * rank;
    }
  }
}

const float* MarkovMixer::Latents(const ModelConfig& config, const MarkovWeights& weights,
                                  std::span<const PathRow> rows, Backend* backend) {
  const MarkovSpec& spec = config.markov;
  if (spec.kind == MarkovSpec::Kind::kRecurrent) Unroll(config, weights, rows, backend);
  tokens_.clear();
  for (const PathRow& row : rows) tokens_.push_back(row.path.back());
  Embed(weights.tokens, tokens_, spec.rank, backend, embedded_.as<float>());
  if (spec.kind == MarkovSpec::Kind::kVanilla) return embedded_.as<float>();
  if (spec.kind == MarkovSpec::Kind::kGated) Gate(config, weights, rows, backend);
  return latents_.as<float>();
}

PathLogits MarkovMixer::Follow(const ModelConfig& config, const MarkovWeights& weights,
                               std::span<const PathRow> rows, const float* logits,
                               Backend* backend) {
  Grow(rows.size(), config);
  const MarkovSpec& spec = config.markov;
  const int count = rows.size();
  float* to = logits_.as<float>();
  for (const PathRow& row : rows) {
    to = std::copy_n(logits + row.row() * config.vocabulary, config.vocabulary, to);
  }
  if (spec.rank > 0) {
    const float* latents = Latents(config, weights, rows, backend);
    backend->MatMulAdd(weights.output, latents, count, logits_.as<float>());
  }
  SetMaxima(logits_.as<float>(), rows.size(), config.vocabulary, maxima_.as<float>());
  PathLogits said{.logits = {logits_.as<float>(), maxima_.as<float>()}};
  if (!spec.confidence) return said;
  Multiply(weights.confidence, LayStates(config, rows, spec.confidence_reads_tokens), count,
           backend, confidence_.as<float>());
  said.confidence = confidence_.as<float>();
  return said;
}

}  // namespace foretoken
