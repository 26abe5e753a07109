#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/datastore/index/large_array.h"
#include "core/datastore/index/token_text.h"

namespace foretoken {

/// The positions of a text in the order of what follows them.
struct SuffixOrder {
  LargeArray<std::uint32_t> suffixes;  ///< The suffixes of all tokens; separators start no suffix.
  LargeArray<std::uint32_t> buckets;   ///< Suffixes that start with token t: [buckets[t], [t + 1]).
};

/// Whether suffix `a` comes before suffix `b` in the order of SortSuffixes, where both agree in
/// `depth` entries.
template <typename T>
bool SuffixBefore(const T* text, std::uint32_t a, std::uint32_t b, int depth = 0) {
  for (int i = depth; i < kSortDepth; ++i) {
    if (text[a + i] != text[b + i]) return text[a + i] < text[b + i];
  }
  return a < b;
}

/// Sorts the suffixes of `entries` (T is uint16_t or uint32_t) by their first kSortDepth entries,
/// equal ones by position. After `entries` there must be kSortDepth readable separators. The result
/// does not depend on the number of threads. Once `*cancelled`, it ends soon with whatever. Beside
/// the result each thread takes 16 MB at most, and 4 bytes per token of the vocabulary.
template <typename T>
SuffixOrder SortSuffixes(std::span<const T> entries, int vocabulary, int threads,
                         const std::atomic<bool>* cancelled = nullptr);

}  // namespace foretoken
