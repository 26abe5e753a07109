#include "core/datastore/index/token_tree.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr std::size_t kFirstNodeSlots = 64;

}  // namespace

TokenTree::TokenTree() : nodes_(1), slots_(kFirstNodeSlots) {}

std::size_t TokenTree::SlotOf(std::uint32_t parent, Token token) const {
  const std::uint64_t key = std::uint64_t{parent} << 32 | static_cast<std::uint32_t>(token);
  return (key * 0x9E3779B97F4A7C15U >> 29) & (slots_.size() - 1);
}

std::size_t TokenTree::Probe(std::uint32_t parent, Token token) const {
  std::size_t slot = SlotOf(parent, token);
  while (slots_[slot] != 0) {
    const Node& node = nodes_[slots_[slot]];
    if (node.parent == parent && node.token == token) break;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

std::uint32_t TokenTree::Find(std::uint32_t parent, Token token) const {
  return slots_[Probe(parent, token)];
}

std::uint32_t TokenTree::FindOrAdd(std::uint32_t parent, Token token) {
  std::size_t slot = Probe(parent, token);
  if (slots_[slot] != 0) return slots_[slot];
  if (2 * (used_ + 1) > slots_.size()) {
    Grow();
    slot = Probe(parent, token);
  }
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  const std::uint32_t sibling = nodes_[parent].first_child;
  nodes_[index] = {.token = token, .parent = parent, .next_sibling = sibling};
  if (sibling != 0) nodes_[sibling].previous_sibling = index;
  nodes_[parent].first_child = index;
  slots_[slot] = index;
  ++used_;
  return index;
}

void TokenTree::Uncount(std::uint32_t index) {
  Node& node = nodes_[index];
  FT_CHECK(node.count > 0);
  if (--node.count > 0 || index == 0) return;
  FT_CHECK(node.first_child == 0, "a node that never occurred has children that did");
  Remove(index);
}

void TokenTree::Remove(std::uint32_t index) {
  const Node& node = nodes_[index];
  if (node.previous_sibling != 0) {
    nodes_[node.previous_sibling].next_sibling = node.next_sibling;
  } else {
    nodes_[node.parent].first_child = node.next_sibling;
  }
  if (node.next_sibling != 0) nodes_[node.next_sibling].previous_sibling = node.previous_sibling;

  // Later entries of the same run of slots move up, so that no search ends too early.
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = Probe(node.parent, node.token);
  slots_[hole] = 0;
  for (std::size_t slot = (hole + 1) & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const Node& moved = nodes_[slots_[slot]];
    const std::size_t home = SlotOf(moved.parent, moved.token);
    if (((slot - home) & mask) < ((slot - hole) & mask))
      continue;  // Its home lies behind the hole.
    slots_[hole] = slots_[slot];
    slots_[slot] = 0;
    hole = slot;
  }
  free_.push_back(index);
  --used_;
}

void TokenTree::Clear() {
  nodes_.resize(1);
  nodes_[0] = {};
  free_.clear();
  std::ranges::fill(slots_, 0);
  used_ = 1;
}

void TokenTree::Grow() {
  std::vector<std::uint32_t> old(2 * slots_.size());
  old.swap(slots_);
  for (const std::uint32_t index : old) {
    if (index != 0) slots_[Probe(nodes_[index].parent, nodes_[index].token)] = index;
  }
}

}  // namespace foretoken
