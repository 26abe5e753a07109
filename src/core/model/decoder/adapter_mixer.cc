#include "base/numbers/integers.h"
#include "core/model/decoder/mixers.h"

#include <algorithm>

#include "base/check.h"
#include "core/model/decoder/float_buffer.h"

namespace foretoken {

void AdapterMixer::GrowTo(std::size_t rows) {
  if (adapters_ == nullptr) return;
  rows_.reserve(rows);
  groups_.reserve(rows);
  GrowFloats(inputs_, rows * adapters_->widest_inputs());
  GrowFloats(reduced_, rows * adapters_->widest_rank());
  GrowFloats(made_, rows * adapters_->widest_outputs());
}

void AdapterMixer::Begin(std::span<const ForwardRow> rows) {
  rows_.clear();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const AdapterUse& use = rows[row].adapter;
    if (use.index < 0) continue;
    FT_CHECK(adapters_ != nullptr && use.index < adapters_->count(), "adapter {}", use.index);
    rows_.push_back({use, Int(row)});
  }
  // Rows of one sequence are adjacent and have one adapter, so that most passes are in order.
  const auto before = [](const Adapted& a, const Adapted& b) {
    return a.use.index != b.use.index ? a.use.index < b.use.index : a.row < b.row;
  };
  if (!std::ranges::is_sorted(rows_, before)) std::ranges::sort(rows_, before);
}

void AdapterMixer::Add(int layer, AdaptedMatrix matrix, const float* x, float* y,
                       Backend* backend) {
  if (rows_.empty()) return;
  const AdaptedProduct& product = adapters_->Of(layer, matrix);
  const auto place_of = [&product](const Adapted& row) { return product.places[row.use.index]; };
  const std::span<const Adapted> rows(rows_);
  for (std::size_t begin = 0; begin < rows.size();) {
    // Rows of neighbouring adapters whose factors are in one stack.
    const int stack = place_of(rows[begin]).stack;
    groups_.clear();
    std::size_t end = begin;
    for (; end < rows.size() && place_of(rows[end]).stack == stack; ++end) {
      const int index = place_of(rows[end]).index;
      const int at = end - begin;
      if (groups_.empty() || groups_.back().matrix != index) groups_.push_back({index, at, at});
      groups_.back().end = at + 1;
    }
    if (stack >= 0) {
      AddStack(product.stacks[stack], rows.subspan(begin, end - begin), x, y, backend);
    }
    begin = end;
  }
}

// Adds what the adapters of `rows`, whose groups are groups_, make of one stack of factors.
void AdapterMixer::AddStack(const FactorStack& stack, std::span<const Adapted> rows, const float* x,
                            float* y, Backend* backend) {
  const std::int64_t inputs = stack.down.inputs;
  const std::int64_t outputs = stack.up.outputs;
  const std::int64_t rank = stack.up.inputs;
  const float* from = x + rows[0].row * inputs;
  const auto apart = [](const Adapted& a, const Adapted& b) { return b.row != a.row + 1; };
  if (std::ranges::adjacent_find(rows, apart) != rows.end()) {
    float* to = inputs_.as<float>();
    for (const Adapted& each : rows) to = std::copy_n(x + each.row * inputs, inputs, to);
    from = inputs_.as<float>();
  }
  float* const reduced = reduced_.as<float>();
  backend->MatMulGroups(stack.down, groups_, nullptr, from, reduced);
  for (std::ptrdiff_t i = 0; i < std::ssize(rows); ++i) {
    const float scale = rows[i].use.scale;
    if (scale != 1) backend->Scale(scale, rank, reduced + i * rank);
  }
  float* const made = made_.as<float>();
  backend->MatMulGroups(stack.up, groups_, nullptr, reduced, made);
  for (std::ptrdiff_t i = 0; i < std::ssize(rows); ++i) {
    backend->Add(made + i * outputs, outputs, y + rows[i].row * outputs);
  }
}

}  // namespace foretoken
