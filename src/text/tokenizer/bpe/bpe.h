#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// Two neighbouring tokens that become one. Among all pairs of a word the lowest rank goes first.
struct BpeMerge {
  Token left = -1;
  Token right = -1;
  Token merged = -1;
  std::uint32_t rank = 0;
};

/// Byte pair encoding of words. Immutable and thread-safe.
class Bpe {
 public:
  struct Options {
    /// A word that is itself a token is that token, whatever the merges say.
    bool whole_words_first = false;
    /// What stands for a byte that is no token; -1: such bytes are dropped.
    Token unknown = -1;
  };

  /// `token_bytes[id]` are the bytes of token `id`, empty for ids that words never encode to; they
  /// must outlive this object. The first of several merges of one pair counts.
  Bpe(std::span<const std::string_view> token_bytes, std::span<const BpeMerge> merges,
      Options options);

  /// Appends the tokens of `word`, in O(n log n) for n bytes.
  void EncodeWord(std::string_view word, std::vector<Token>* tokens) const;
  /// Merges the tokens that a word begins as, likewise.
  void Merge(std::vector<Token>* symbols) const;

 private:
  struct Symbol;
  struct Candidate;

  const BpeMerge* FindMerge(Token left, Token right) const;
  std::size_t Slot(Token left, Token right) const;
  void MergeShort(std::vector<Token>* symbols) const;
  void MergeLong(std::vector<Token>* symbols) const;

  Options options_;
  std::array<Token, 256> byte_tokens_;
  std::vector<BpeMerge> table_;  // open addressing; a free slot has left == -1
  std::unordered_map<std::string_view, Token> words_;
};

}  // namespace foretoken
