#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/adapter/adapter.h"

namespace foretoken {

/// The factors of one matrix, of several adapters whose factors for it are of one rank.
struct FactorStack {
  Matrix down;  ///< [rank, inputs] each.
  Matrix up;    ///< [outputs, rank] each.
};

/// What all adapters of a set add to one matrix.
struct AdaptedProduct {
  /// Where an adapter's factors are; in no stack where it adds nothing.
  struct Place {
    int stack = -1;
    int index = 0;
  };
  std::vector<FactorStack> stacks;  ///< One for each rank.
  std::vector<Place> places;        ///< By adapter.
};

/// The adapters of one model, packed as `backend` packs. Made once, never changed, shared by all
/// models over the same weights. Thread-safe.
class AdapterSet {
 public:
  /// At least one adapter of a model of that configuration.
  AdapterSet(std::span<const Adapter> adapters, Backend* backend);

  int count() const { return count_; }
  /// Names how they were packed (Backend::layout).
  std::string_view layout() const { return layout_; }
  const AdaptedProduct& Of(int layer, AdaptedMatrix matrix) const {
    return layers_[layer][static_cast<std::size_t>(matrix)];
  }
  /// The largest numbers of any factors.
  int widest_rank() const { return widest_rank_; }
  std::int64_t widest_outputs() const { return widest_outputs_; }
  std::int64_t widest_inputs() const { return widest_inputs_; }

 private:
  AdaptedProduct Pack(std::span<const Adapter> adapters, std::size_t layer, std::size_t matrix,
                      Backend* backend);

  int count_ = 0;
  std::string_view layout_;
  int widest_rank_ = 0;
  std::int64_t widest_outputs_ = 0;
  std::int64_t widest_inputs_ = 0;
  std::vector<std::array<AdaptedProduct, kAdaptedMatrices>> layers_;
};

}  // namespace foretoken
