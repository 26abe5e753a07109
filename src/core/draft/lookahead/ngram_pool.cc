#include "core/draft/lookahead/ngram_pool.h"

#include <algorithm>

namespace foretoken {

NgramPool::NgramPool()
    : entries_(std::size_t{kSets} * kWays), rests_(entries_.size() * kMaxLength) {
  found_.reserve(kWays);
  latest_.reserve(kWays);
}

std::span<Token> NgramPool::RestOf(const Entry& entry) {
  const std::size_t index = &entry - entries_.data();
  return std::span(rests_).subspan(index * kMaxLength, entry.length);
}

void NgramPool::Insert(Token first, std::span<const Token> rest) {
  rest = rest.first(std::min<std::size_t>(rest.size(), kMaxLength));
  const std::span<Entry> set = SetOf(first);
  const auto is_same = [&](const Entry& entry) {
    return entry.first == first && std::ranges::equal(RestOf(entry), rest);
  };
  auto place = std::ranges::find_if(set, is_same);
  if (place == set.end()) {
    place = std::ranges::min_element(set, {}, &Entry::stamp);
    place->first = first;
    place->length = static_cast<std::int32_t>(rest.size());
    std::ranges::copy(rest, RestOf(*place).begin());
  }
  place->stamp = ++clock_;
}

std::span<const std::span<const Token>> NgramPool::Latest(Token first, int most) {
  found_.clear();
  for (const Entry& entry : SetOf(first)) {
    if (entry.first == first) found_.push_back(&entry);
  }
  std::ranges::sort(found_, std::ranges::greater(), &Entry::stamp);
  found_.resize(std::min(found_.size(), Size(std::max(most, 0))));
  latest_.clear();
  for (const Entry* entry : found_) latest_.emplace_back(RestOf(*entry));
  return latest_;
}

void NgramPool::Clear() { std::ranges::fill(entries_, Entry{}); }

}  // namespace foretoken
