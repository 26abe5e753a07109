#include "text/grammar/tokens/token_trie.h"

#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"

namespace foretoken {

TokenTrie::TokenTrie(std::span<const std::string_view> token_bytes) {
  begins_.push_back(0);
  for (const std::string_view bytes : token_bytes) {
    if (bytes.size() <= kMaxTokenBytes) bytes_ += bytes;
    begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (bytes.size() == 1) bytes_alone_.set(static_cast<std::uint8_t>(bytes[0]));
  }
  std::vector<Token> sorted(token_bytes.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto alone = [&](char c) { return bytes_alone_[static_cast<std::uint8_t>(c)]; };
  std::erase_if(sorted, [&](Token token) {
    return BytesOf(token).empty() || !std::ranges::all_of(BytesOf(token), alone);
  });
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](Token a, Token b) { return BytesOf(a) < BytesOf(b); });

  std::vector<std::int32_t> open = {0};  // The nodes of the current path, by depth.
  const auto close_below = [&](std::size_t depth) {
    for (; open.size() > depth + 1; open.pop_back()) {
      nodes_[open.back()].end = static_cast<std::int32_t>(nodes_.size());
    }
  };
  nodes_.emplace_back();
  std::string_view path;
  for (const Token token : sorted) {
    const std::string_view bytes = BytesOf(token);
    const std::size_t common = std::ranges::mismatch(path, bytes).in1 - path.begin();
    close_below(common);
    for (std::size_t i = common; i < bytes.size(); ++i) {
      open.push_back(static_cast<std::int32_t>(nodes_.size()));
      nodes_.push_back({.token_begin = static_cast<std::int32_t>(tokens_.size()),
                        .depth = static_cast<std::uint16_t>(i + 1),
                        .byte = static_cast<std::uint8_t>(bytes[i])});
    }
    tokens_.push_back(token);
    path = bytes;
    depth_ = std::max(depth_, Int(bytes.size()));
  }
  close_below(0);
  nodes_[0].end = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({.token_begin = static_cast<std::int32_t>(tokens_.size())});
  LookBelow();
}

std::optional<Token> TokenTrie::LongestAt(std::string_view text) const {
  std::optional<Token> longest;
  int node = 0;
  for (const char c : text) {
    int child = node + 1;
    const int end = nodes_[node].end;
    while (child < end && nodes_[child].byte != static_cast<std::uint8_t>(c)) {
      child = nodes_[child].end;
    }
    if (child >= end) break;
    node = child;
    if (!tokens(node).empty()) longest = tokens(node).front();
  }
  return longest;
}

void TokenTrie::LookBelow() {
  below_.resize(nodes_.size());
  std::vector<int> parents(nodes_.size(), 0);
  std::vector<Utf8State> at(nodes_.size(), Utf8State::kWhole);
  std::vector<int> path(depth_ + 1, 0);  // By depth.
  for (int node = 1; node < size(); ++node) {
    const Node& here = nodes_[node];
    path[here.depth] = node;
    parents[node] = path[here.depth - 1];
    at[node] = NextUtf8(at[parents[node]], here.byte);
  }
  for (int node = size() - 1; node > 0; --node) {
    Below& below = below_[node];
    Below& above = below_[parents[node]];
    const bool broken = at[node] == Utf8State::kBroken;
    const std::uint8_t byte = nodes_[node].byte;
    above.kinds |= below.kinds | (broken ? kBrokenKind : byte < 0x80 ? KindOf(byte) : kWideKind);
    above.length = std::max(above.length, below.length + 1);
    // Within a character its kind says nothing of what may follow.
    if (at[node] != Utf8State::kWhole) below.kinds |= kBrokenKind;
  }
}

}  // namespace foretoken
