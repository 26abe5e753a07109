#include "core/backend/delta/delta_rule.h"

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/numbers/portable_math.h"

namespace foretoken {
namespace {

// Beyond, e^x is not a normal number.
double BoundedExp(double x) { return PortableExp(std::min(std::max(-700.0, x), 700.0)); }

// log(1 + e^x), which is x to the last bit of a float from here on.
double Softplus(double x) { return x > 40 ? x : PortableLog(1 + BoundedExp(x)); }

}  // namespace

DeltaGates GatesOf(float write, float forget, float rate, float rate_bias) {
  return {
      .decay = static_cast<float>(BoundedExp(-double{rate} * Softplus(double{forget + rate_bias}))),
      .write = static_cast<float>(1 / (1 + BoundedExp(-double{write})))};
}

std::size_t DeltaStore::Bytes(const DeltaShape& shape, int layers, std::int64_t blocks) {
  const std::int64_t floats = kBlockSize * shape.slot_width() + shape.state_width();
  return Size(layers * blocks * floats) * sizeof(float);
}

DeltaStore DeltaStore::Allocate(const DeltaShape& shape, int layers, std::int64_t blocks) {
  if (layers == 0) return {};
  const auto count = Size(layers * blocks);
  const auto floats = [count](std::int64_t of_block) {
    return Buffer(count * Size(of_block) * sizeof(float));
  };
  return {.shape = shape,
          .layers = layers,
          .blocks = blocks,
          .slots = floats(kBlockSize * shape.slot_width()),
          .states = floats(shape.state_width()),
          .applied = std::vector<std::int8_t>(count, 0)};
}

float* DeltaStore::Slot(int layer, std::int32_t slot) {
  return slots.as<float>() + (layer * blocks * kBlockSize + slot) * shape.slot_width();
}

float* DeltaStore::State(int layer, std::int32_t block, int value_head) {
  return states.as<float>() + (layer * blocks + block) * shape.state_width() +
         std::int64_t{value_head} * shape.key_dim * shape.value_dim;
}

void DeltaStore::Forget(int layer, std::int32_t slot) {
  std::int8_t& count = Applied(layer)[slot / kBlockSize];
  if (count > slot % kBlockSize) count = 0;
}

void DeltaStore::CopySlot(int layer, std::int32_t from, std::int32_t to) {
  if (from == to) return;
  std::copy_n(Slot(layer, from), shape.slot_width(), Slot(layer, to));
  Forget(layer, to);
}

}  // namespace foretoken
