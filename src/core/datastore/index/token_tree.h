#pragma once

#include <cstdint>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// A tree whose nodes carry a token and a count. Node 0 is the root; as a link, 0 means none.
/// Finding a child takes the same time however many there are. Not thread-safe; allocates only when
/// it grows beyond what it has been.
class TokenTree {
 public:
  struct Node {
    Token token = -1;
    std::uint32_t parent = 0;
    std::uint32_t count = 0;
    std::uint32_t first_child = 0;
    std::uint32_t next_sibling = 0;
    std::uint32_t previous_sibling = 0;
  };

  TokenTree();

  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  /// Nodes, the root among them.
  std::size_t size() const { return used_; }

  std::uint32_t count(std::uint32_t index) const { return nodes_[index].count; }
  /// Calls visit(child, token, count of the child) for every child of a node.
  template <typename Visitor>
  void VisitChildren(std::uint32_t parent, Visitor&& visit) const {
    for (std::uint32_t child = nodes_[parent].first_child; child != 0;
         child = nodes_[child].next_sibling) {
      visit(child, nodes_[child].token, nodes_[child].count);
    }
  }

  /// Fetches into the caches what Find and FindOrAdd look at first, so that several wait together.
  void Prefetch(std::uint32_t parent, Token token) const {
    __builtin_prefetch(&slots_[SlotOf(parent, token)]);
    __builtin_prefetch(&nodes_[parent]);
  }
  /// The child of `parent` that carries `token`, or 0.
  std::uint32_t Find(std::uint32_t parent, Token token) const;
  /// The same; added with count 0 where it was missing.
  std::uint32_t FindOrAdd(std::uint32_t parent, Token token);
  void Count(std::uint32_t index) { ++nodes_[index].count; }
  /// Takes one from a node's count, and the node away when that was the last. Such a node must have
  /// no children; the root always stays.
  void Uncount(std::uint32_t index);
  /// Removes all but the root, whose count becomes 0. Keeps the memory.
  void Clear();

 private:
  std::size_t SlotOf(std::uint32_t parent, Token token) const;
  // The slot of the child, or the free one where it would go.
  std::size_t Probe(std::uint32_t parent, Token token) const;
  void Grow();
  void Remove(std::uint32_t index);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> slots_;  // Node indices by (parent, token), linear probing; 0: free.
  std::size_t used_ = 1;
};

}  // namespace foretoken
