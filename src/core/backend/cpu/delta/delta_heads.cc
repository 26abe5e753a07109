#include "core/backend/cpu/delta/delta_heads.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/integers.h"

namespace foretoken::cpu {
namespace {

template <typename Visit>
void VisitValueHeads(const DeltaShape& shape, int key_head, const Visit& visit) {
  for (int head = 0; head < shape.value_heads; ++head) {
    if (shape.KeyOf(head) == key_head) visit(head);
  }
}

// Where a row has the values of a head, which are convolved like queries and keys.
int ValuesOf(const DeltaShape& shape, int head) {
  return 2 * shape.key_width() + head * shape.value_dim;
}

// Where a slot has what a head has made of its position.
struct Made {
  Made(const DeltaShape& shape, float* slot)
      : keys(slot + shape.conv_width()),
        written(keys + shape.key_width()),
        decays(written + shape.value_width()) {}

  float* keys;
  float* written;
  float* decays;
};

}  // namespace

void DeltaWorker::Grow(const DeltaCall& call, const DeltaWalk& walk) {
  const DeltaShape& shape = call.store.shape;
  queries_.Grow(call.plan.rows.size() * Size(shape.key_dim) * sizeof(float));
  const std::int64_t kept = std::int64_t{walk.kept_states()} * shape.key_dim * shape.value_dim;
  kept_.Grow(kept * sizeof(float));
  inputs_.resize(shape.taps);
  shifted_.resize(inputs_.size());
}

void DeltaWorker::Run(const DeltaCall& call, const DeltaWalk& walk, int key_head) {
  const DeltaShape& shape = call.store.shape;
  const int rows = call.plan.rows.size();
  KeepInputs(call, key_head);
  for (int row = 0; row < rows; ++row) ConvolveRow(call, row, key_head);
  VisitValueHeads(shape, key_head, [&](int head) { RunValueHead(call, walk, head); });
}

// Keeps the inputs of all rows before any is convolved: rows read those before them.
void DeltaWorker::KeepInputs(const DeltaCall& call, int key_head) {
  const DeltaShape& shape = call.store.shape;
  const float* x = call.x;
  for (const RowPlace& place : call.plan.rows) {
    float* const slot = call.store.Slot(call.layer, SlotIn(call.places, place.slot));
    const auto keep = [&](int at, int width) { std::copy_n(x + at, width, slot + at); };
    keep(key_head * shape.key_dim, shape.key_dim);
    keep(shape.key_width() + key_head * shape.key_dim, shape.key_dim);
    VisitValueHeads(shape, key_head,
                    [&](int head) { keep(ValuesOf(shape, head), shape.value_dim); });
    x += shape.row_width();
  }
}

void DeltaWorker::ConvolveRow(const DeltaCall& call, int row, int key_head) {
  const DeltaShape& shape = call.store.shape;
  const RowPlace& place = call.plan.rows[row];
  for (int tap = 0; tap < shape.taps; ++tap) {
    const std::int32_t position = place.position - shape.taps + 1 + tap;
    inputs_[tap] =
        position < 0
            ? nullptr
            : call.store.Slot(call.layer, SlotOnPath(call.plan, call.places, place, position));
  }
  const Made made(shape, call.store.Slot(call.layer, SlotIn(call.places, place.slot)));
  float* const query = queries_.as<float>() + std::int64_t{row} * shape.key_dim;
  float* const key = made.keys + key_head * shape.key_dim;
  const auto convolve = [&](int at, int width, float* to) {
    for (std::size_t tap = 0; tap < inputs_.size(); ++tap) {
      shifted_[tap] = inputs_[tap] == nullptr ? nullptr : inputs_[tap] + at;
    }
    kernels_->convolve(shifted_.data(), call.weights.taps + at, shape.conv_width(), shape.taps,
                       width, to);
  };
  convolve(key_head * shape.key_dim, shape.key_dim, query);
  convolve(shape.key_width() + key_head * shape.key_dim, shape.key_dim, key);
  VisitValueHeads(shape, key_head, [&](int head) {
    convolve(ValuesOf(shape, head), shape.value_dim, made.written + head * shape.value_dim);
  });
  kernels_->make_unit(1.0F / std::sqrt(static_cast<float>(shape.key_dim)), shape.key_dim, query);
  kernels_->make_unit(1.0F, shape.key_dim, key);
}

void DeltaWorker::RunValueHead(const DeltaCall& call, const DeltaWalk& walk, int head) {
  const DeltaShape& shape = call.store.shape;
  const int key_offset = shape.KeyOf(head) * shape.key_dim;
  const int value_offset = head * shape.value_dim;
  const std::int64_t state_size = std::int64_t{shape.key_dim} * shape.value_dim;
  const auto state_of = [&](std::int32_t state) {
    return state >= 0 ? call.store.State(call.layer, state, head)
                      : kept_.as<float>() + (DeltaStep::Kept(0) - state) * state_size;
  };
  for (const DeltaStep& step : walk.steps()) {
    float* const state = state_of(step.state);
    switch (step.kind) {
      case DeltaStep::Kind::kClear:
        std::fill_n(state, state_size, 0.0F);
        break;
      case DeltaStep::Kind::kCopy:
        std::copy_n(state_of(step.at), state_size, state);
        break;
      case DeltaStep::Kind::kApply: {
        const Made made(shape, call.store.Slot(call.layer, step.at));
        kernels_->apply_to_state(made.keys + key_offset, made.written + value_offset,
                                 made.decays[head], shape.key_dim, shape.value_dim, state);
        break;
      }
      case DeltaStep::Kind::kRow: {
        const RowPlace& place = call.plan.rows[step.at];
        const Made made(shape, call.store.Slot(call.layer, SlotIn(call.places, place.slot)));
        const float* const gates =
            call.x + step.at * std::int64_t{shape.row_width()} + shape.conv_width();
        const float* const writes = gates + shape.value_width();
        const DeltaGates own = GatesOf(writes[head], writes[shape.value_heads + head],
                                       call.weights.rates[head], call.weights.rate_bias[head]);
        made.decays[head] = own.decay;
        float* const out = call.out + step.at * std::int64_t{2 * shape.value_width()};
        std::copy_n(gates + value_offset, shape.value_dim, out + value_offset);
        kernels_->read_state({state, queries_.as<float>() + step.at * std::int64_t{shape.key_dim},
                              made.keys + key_offset, made.written + value_offset,
                              out + shape.value_width() + value_offset, own.decay, own.write,
                              shape.key_dim, shape.value_dim});
        break;
      }
    }
  }
}

DeltaPass::DeltaPass(const DeltaKernels& kernels, int workers) {
  for (int i = 0; i < workers; ++i) workers_.emplace_back(kernels);
}

std::int64_t DeltaPass::Plan(const DeltaCall& call) {
  walk_.Plan(call.plan, call.places, call.layer, &call.store);
  // Which workers come is chance, and an allocation that fails on a thread of the pool could not be
  // reported.
  for (DeltaWorker& worker : workers_) worker.Grow(call, walk_);
  return std::ssize(walk_.steps()) * call.store.shape.state_width();
}

void DeltaPass::Run(const DeltaCall& call, int worker, std::int64_t begin, std::int64_t end) {
  for (std::int64_t head = begin; head < end; ++head) {
    workers_[worker].Run(call, walk_, static_cast<int>(head));
  }
}

}  // namespace foretoken::cpu
