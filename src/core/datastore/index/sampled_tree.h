#pragma once

#include <cstdint>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// Continuations drawn from a datastore, counted as a tree of which only the parts that are asked
/// for are built: of the some 600 nodes of a query, fusion looks below fifteen. (Built in full, as
/// a TokenTree, the tree took half the time of a query.) Node 0 is the root. Not thread-safe;
/// allocates only when it grows beyond what it has been.
class SampledTree {
 public:
  SampledTree();

  /// Removes all continuations. Those to come have entries of `token_bytes` (2 or 4) and count up
  /// to a separator or to `depth` tokens.
  void Clear(int token_bytes, int depth);
  /// Adds the continuation that starts at `text`, which must stay there until Clear.
  void Add(const void* text);

  /// How many continuations go through a node; all of them through the root.
  std::uint32_t count(std::uint32_t node) const { return nodes_[node].count; }

  /// Calls visit(child, token, count of the child) for every child of a node.
  template <typename Visitor>
  void VisitChildren(std::uint32_t node, Visitor&& visit) {
    if (nodes_[node].first_path != 0) Expand(node);
    for (std::uint32_t child = nodes_[node].first_child; child != 0;
         child = nodes_[child].next_sibling) {
      visit(child, nodes_[child].token, nodes_[child].count);
    }
  }

 private:
  struct Path {
    const void* text = nullptr;
    std::uint32_t next = 0;  // The next path of the same node.
  };
  struct Node {
    Token token = -1;
    int depth = 0;
    std::uint32_t count = 0;
    std::uint32_t first_path = 0;  // 0 once expanded.
    std::uint32_t first_child = 0;
    std::uint32_t next_sibling = 0;
  };
  struct Slot {
    std::uint32_t expansion = 0;  // The Expand to which it belongs; of any other it is free.
    Token token = -1;
    std::uint32_t child = 0;
  };

  void Expand(std::uint32_t node);
  template <typename T>
  void ExpandAs(std::uint32_t node);
  std::uint32_t FindOrAddChild(std::uint32_t node, Token token);

  int token_bytes_ = 4;
  int depth_ = 0;
  std::vector<Path> paths_;  // The first is none.
  std::vector<Node> nodes_;
  std::vector<Slot> slots_;  // Children of the node that is expanded, by token, linear probing.
  std::uint32_t expansion_ = 0;
};

}  // namespace foretoken
