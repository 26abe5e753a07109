#include "core/datastore/index/sampled_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/datastore/index/token_text.h"

namespace foretoken {

SampledTree::SampledTree() : paths_(1), nodes_(1) {}

void SampledTree::Clear(int token_bytes, int depth) {
  token_bytes_ = token_bytes;
  depth_ = depth;
  paths_.resize(1);
  nodes_.assign(1, {});
}

void SampledTree::Add(const void* text) {
  Node& root = nodes_[0];
  paths_.push_back({text, root.first_path});
  root.first_path = static_cast<std::uint32_t>(paths_.size() - 1);
  ++root.count;
}

void SampledTree::Expand(std::uint32_t node) {
  if (token_bytes_ == 2) {
    ExpandAs<std::uint16_t>(node);
  } else {
    ExpandAs<std::uint32_t>(node);
  }
}

template <typename T>
void SampledTree::ExpandAs(std::uint32_t node) {
  const int depth = nodes_[node].depth;
  std::uint32_t path = std::exchange(nodes_[node].first_path, 0);
  if (depth == depth_) return;
  slots_.resize(std::max(slots_.size(), std::bit_ceil(std::size_t{2} * nodes_[node].count)));
  ++expansion_;
  Token last = -1;
  std::uint32_t child = 0;
  while (path != 0) {
    const std::uint32_t next = paths_[path].next;
    const T token = static_cast<const T*>(paths_[path].text)[depth];
    if (token != kSeparator<T>) {
      // Neighbours in the order of suffixes mostly go on alike.
      if (static_cast<Token>(token) != last) {
        last = static_cast<Token>(token);
        child = FindOrAddChild(node, last);
      }
      paths_[path].next = nodes_[child].first_path;
      nodes_[child].first_path = path;
      ++nodes_[child].count;
    }
    path = next;
  }
}

std::uint32_t SampledTree::FindOrAddChild(std::uint32_t node, Token token) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (static_cast<std::uint32_t>(token) * 0x9E3779B1U >> 12) & mask;
  for (; slots_[slot].expansion == expansion_; slot = (slot + 1) & mask) {
    if (slots_[slot].token == token) return slots_[slot].child;
  }
  const auto child = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(
      {.token = token, .depth = nodes_[node].depth + 1, .next_sibling = nodes_[node].first_child});
  nodes_[node].first_child = child;
  slots_[slot] = {expansion_, token, child};
  return child;
}

}  // namespace foretoken
