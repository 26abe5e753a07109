#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/types.h"
#include "text/grammar/automaton/byte_set.h"
#include "text/grammar/automaton/character_kinds.h"

namespace foretoken {

/// The tokens of a vocabulary, sorted into a tree by their bytes. Immutable.
class TokenTrie {
 public:
  /// A node stands for the bytes on the way to it. Nodes come in depth-first order; node 0 is the
  /// root.
  struct Node {
    std::int32_t end = 0;          ///< One past the last node below this one.
    std::int32_t token_begin = 0;  ///< The node's own tokens; they end where the next node's begin.
    std::uint16_t depth = 0;
    std::uint8_t byte = 0;
  };
  /// The texts that lead on from a node.
  struct Below {
    /// The kinds of all their characters; the last may be cut off.
    CharacterKinds kinds = kNoKinds;
    int length = 0;  ///< Bytes of the longest.
  };
  static constexpr std::size_t kMaxTokenBytes = 4096;

  /// `token_bytes` holds the bytes of every token; empty for those that never stand for text
  /// (special tokens). Tokens of more than kMaxTokenBytes are left out, and the tree has none with
  /// a byte that no token stands for alone.
  explicit TokenTrie(std::span<const std::string_view> token_bytes);

  int vocabulary() const { return std::ssize(begins_) - 1; }
  /// Bytes of the longest token.
  int depth() const { return depth_; }
  std::string_view BytesOf(Token token) const {
    return std::string_view(bytes_).substr(begins_[token], begins_[token + 1] - begins_[token]);
  }
  /// The token with the most bytes of those with which `text` begins.
  std::optional<Token> LongestAt(std::string_view text) const;
  /// The bytes that tokens stand for alone: a text of these can be written whatever comes next.
  const ByteSet& bytes() const { return bytes_alone_; }

  int size() const { return std::ssize(nodes_) - 1; }
  const Node& at(int node) const { return nodes_[node]; }
  const Below& below(int node) const { return below_[node]; }
  std::span<const Token> tokens(int node) const { return tokens(node, node + 1); }
  /// The tokens of the nodes from `begin` to before `end`.
  std::span<const Token> tokens(int begin, int end) const {
    return std::span(tokens_).subspan(nodes_[begin].token_begin,
                                      nodes_[end].token_begin - nodes_[begin].token_begin);
  }

 private:
  void LookBelow();

  std::string bytes_;  // The bytes of all tokens, in order.
  std::vector<std::uint32_t> begins_;
  std::vector<Node> nodes_;  // And one behind the last.
  std::vector<Below> below_;
  std::vector<Token> tokens_;
  ByteSet bytes_alone_;
  int depth_ = 0;
};

}  // namespace foretoken
