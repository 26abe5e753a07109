#include "text/grammar/tokens/frame_masks.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxBytes = 32 << 20;

}  // namespace

std::shared_ptr<const FrameMask> FrameMasks::Find(std::span<const ProgramCounter> counters) {
  const auto id = static_cast<std::size_t>(keys_.Intern(counters));
  if (id == masks_.size()) masks_.emplace_back();
  return masks_[id];
}

std::shared_ptr<const FrameMask> FrameMasks::Add(std::span<const ProgramCounter> counters,
                                                 FrameMask mask) {
  if (bytes_ + keys_.bytes() > kMaxBytes) {
    keys_.Clear();
    masks_.clear();
    bytes_ = 0;
  }
  bytes_ += mask.bits.size() * 8 + (mask.tokens.size() + mask.exits.size()) * 4;
  const auto id = static_cast<std::size_t>(keys_.Intern(counters));
  if (id == masks_.size()) masks_.emplace_back();
  masks_[id] = std::make_shared<const FrameMask>(std::move(mask));
  return masks_[id];
}

}  // namespace foretoken
