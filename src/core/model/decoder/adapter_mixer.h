#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/adapter/adapter_set.h"
#include "core/model/model.h"

namespace foretoken {

/// Adds to the products of a pass what the adapter of each row makes of its inputs:
/// y += up * (scale * (down * x)). Rows are ordered by adapter, so that a pass reads the factors of
/// each once; a row's bits are those that it has alone, and rows without an adapter are left as
/// they are. Owns the room that it takes.
class AdapterMixer {
 public:
  /// With null no row has an adapter.
  explicit AdapterMixer(std::shared_ptr<const AdapterSet> adapters)
      : adapters_(std::move(adapters)) {}

  int count() const { return adapters_ == nullptr ? 0 : adapters_->count(); }

  /// Makes room for that many rows.
  void GrowTo(std::size_t rows);

  /// Takes up the rows of a pass: what Add is about until the next call.
  void Begin(std::span<const ForwardRow> rows);

  /// y [rows, outputs] is the product of x [rows, inputs] and the matrix.
  void Add(int layer, AdaptedMatrix matrix, const float* x, float* y, Backend* backend);

 private:
  /// A row with an adapter.
  struct Adapted {
    AdapterUse use;
    int row = 0;  // Its number in the pass.
  };

  void AddStack(const FactorStack& stack, std::span<const Adapted> rows, const float* x, float* y,
                Backend* backend);

  std::shared_ptr<const AdapterSet> adapters_;
  std::vector<Adapted> rows_;  // By adapter, then in the order of the pass.
  std::vector<RowGroup> groups_;
  Buffer inputs_;   // [rows, inputs], in the order of rows_, as is what follows.
  Buffer reduced_;  // [rows, rank]
  Buffer made_;     // [rows, outputs]
};

}  // namespace foretoken
