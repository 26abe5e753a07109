#include "text/tokenizer/bpe/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "base/check.h"

namespace foretoken {

// Words of natural text are short, and for these scanning all pairs again after each merge beats
// keeping a queue.
constexpr std::size_t kShortWord = 24;

Bpe::Bpe(std::span<const std::string_view> token_bytes, std::span<const BpeMerge> merges,
         Options options)
    : options_(options), table_(std::bit_ceil(2 * merges.size() + 2)) {
  byte_tokens_.fill(options.unknown);
  for (std::size_t id = 0; id < token_bytes.size(); ++id) {
    const std::string_view bytes = token_bytes[id];
    if (bytes.size() == 1) {
      byte_tokens_[static_cast<std::uint8_t>(bytes[0])] = static_cast<Token>(id);
    }
    if (options.whole_words_first && !bytes.empty()) words_.emplace(bytes, id);
  }
  for (const BpeMerge& merge : merges) {
    FT_CHECK(merge.left >= 0 && merge.right >= 0 && merge.merged >= 0);
    std::size_t slot = Slot(merge.left, merge.right);
    while (table_[slot].left >= 0 &&
           (table_[slot].left != merge.left || table_[slot].right != merge.right)) {
      slot = (slot + 1) & (table_.size() - 1);
    }
    if (table_[slot].left < 0) table_[slot] = merge;
  }
}

std::size_t Bpe::Slot(Token left, Token right) const {
  std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  key *= 0x9E3779B97F4A7C15U;
  return (key ^ key >> 32) & (table_.size() - 1);
}

const BpeMerge* Bpe::FindMerge(Token left, Token right) const {
  for (std::size_t slot = Slot(left, right); table_[slot].left >= 0;
       slot = (slot + 1) & (table_.size() - 1)) {
    if (table_[slot].left == left && table_[slot].right == right) return &table_[slot];
  }
  return nullptr;
}

void Bpe::EncodeWord(std::string_view word, std::vector<Token>* tokens) const {
  if (options_.whole_words_first) {
    const auto found = words_.find(word);
    if (found != words_.end()) {
      tokens->push_back(found->second);
      return;
    }
  }
  thread_local std::vector<Token> symbols;
  symbols.clear();
  for (const char byte : word) {
    const Token token = byte_tokens_[static_cast<std::uint8_t>(byte)];
    if (token >= 0) symbols.push_back(token);
  }
  Merge(&symbols);
  tokens->insert(tokens->end(), symbols.begin(), symbols.end());
}

void Bpe::Merge(std::vector<Token>* symbols) const {
  symbols->size() <= kShortWord ? MergeShort(symbols) : MergeLong(symbols);
}

void Bpe::MergeShort(std::vector<Token>* symbols) const {
  std::array<const BpeMerge*, kShortWord> merges;  // of each symbol with its right neighbour
  std::vector<Token>& s = *symbols;
  for (std::size_t i = 0; i + 1 < s.size(); ++i) merges[i] = FindMerge(s[i], s[i + 1]);
  while (s.size() > 1) {
    const BpeMerge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < s.size(); ++i) {
      if (merges[i] != nullptr && (best == nullptr || merges[i]->rank < best->rank)) {
        best = merges[i];
        at = i;
      }
    }
    if (best == nullptr) return;
    s[at] = best->merged;
    s.erase(s.begin() + at + 1);
    std::copy(merges.begin() + at + 1, merges.begin() + s.size(), merges.begin() + at);
    if (at + 1 < s.size()) merges[at] = FindMerge(s[at], s[at + 1]);
    if (at > 0) merges[at - 1] = FindMerge(s[at - 1], s[at]);
  }
}

struct Bpe::Symbol {
  Token token;  // -1 once merged into its left neighbour
  std::uint32_t previous;
  std::uint32_t next;
};

struct Bpe::Candidate {
  const BpeMerge* merge;
  std::uint32_t left;  // position of the left symbol

  bool operator<(const Candidate& other) const {  // for a queue that gives the largest first
    if (merge->rank != other.merge->rank) return merge->rank > other.merge->rank;
    return left > other.left;
  }
};

void Bpe::MergeLong(std::vector<Token>* symbols) const {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  const auto size = static_cast<std::uint32_t>(symbols->size());
  std::vector<Symbol> list(size);
  std::priority_queue<Candidate> queue;
  const auto propose = [&](std::uint32_t left) {
    if (left == kNone || list[left].next == kNone) return;
    const BpeMerge* merge = FindMerge(list[left].token, list[list[left].next].token);
    if (merge != nullptr) queue.push({merge, left});
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    list[i] = {(*symbols)[i], i == 0 ? kNone : i - 1, i + 1 == size ? kNone : i + 1};
  }
  for (std::uint32_t i = 0; i < size; ++i) propose(i);
  while (!queue.empty()) {
    const auto [merge, left] = queue.top();
    queue.pop();
    Symbol& symbol = list[left];
    // A candidate is stale once either of its symbols has changed.
    if (symbol.token != merge->left || symbol.next == kNone ||
        list[symbol.next].token != merge->right) {
      continue;
    }
    Symbol& gone = list[symbol.next];
    symbol.token = merge->merged;
    symbol.next = gone.next;
    gone.token = -1;
    if (symbol.next != kNone) list[symbol.next].previous = left;
    propose(symbol.previous);
    propose(left);
  }
  symbols->clear();
  for (std::uint32_t i = 0; i != kNone; i = list[i].next) symbols->push_back(list[i].token);
}

}  // namespace foretoken
