#include "grammar/frame_masks.h"

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
                                                 FrameMask mask, std::size_t words) {
  if (mask.tokens.size() > 2 * words) {
    mask.bits.assign(words, 0);
    for (const Token token : mask.tokens) mask.bits[token / 64] |= std::uint64_t{1} << token % 64;
    mask.tokens.clear();
  }
  mask.tokens.shrink_to_fit();
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
