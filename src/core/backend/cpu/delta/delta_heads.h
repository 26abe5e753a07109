#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/delta/delta_walk.h"
#include "core/tensor/buffer.h"

namespace foretoken::cpu {

/// One call of Backend::DeltaRule.
struct DeltaCall {
  const BatchPlan& plan;
  const std::int32_t* places;  // KvStore::DeltaPlaces.
  const DeltaWeights& weights;
  int layer;
  const float* x;
  DeltaStore& store;
  float* out;
};

/// A key head of a gated delta layer and the value heads that read by it, of which a pass computes
/// each by itself. A worker's, with the room that it needs.
class DeltaWorker {
 public:
  explicit DeltaWorker(const DeltaKernels& kernels) : kernels_(&kernels) {}

  /// Makes room for Run with this call, which `walk` has planned.
  void Grow(const DeltaCall& call, const DeltaWalk& walk);

  /// Does its part of a call for which there is room.
  void Run(const DeltaCall& call, const DeltaWalk& walk, int key_head);

 private:
  void KeepInputs(const DeltaCall& call, int key_head);
  void ConvolveRow(const DeltaCall& call, int row, int key_head);
  void RunValueHead(const DeltaCall& call, const DeltaWalk& walk, int value_head);

  const DeltaKernels* kernels_;
  std::vector<const float*> inputs_;  // The inputs of a convolution, one for each tap.
  std::vector<const float*> shifted_;
  Buffer queries_;  // [rows, key_dim]
  Buffer kept_;     // States of the pass.
};

/// A pass through a layer, which workers share by key heads.
class DeltaPass {
 public:
  DeltaPass(const DeltaKernels& kernels, int workers);

  /// What all heads are to do in `call`. Returns how many elements they touch.
  std::int64_t Plan(const DeltaCall& call);
  /// Key heads [begin, end) of the call that was planned last.
  void Run(const DeltaCall& call, int worker, std::int64_t begin, std::int64_t end);

 private:
  DeltaWalk walk_;
  std::vector<DeltaWorker> workers_;
};

}  // namespace foretoken::cpu
