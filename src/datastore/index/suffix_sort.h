#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "datastore/index/large_array.h"

namespace foretoken {

/// The positions of a text in the order of what follows them.
struct SuffixOrder {
  LargeArray<std::uint32_t> suffixes;  ///< Of every token; separators start no suffix.
  LargeArray<std::uint32_t> buckets;   ///< Those that start with token t: [buckets[t], [t + 1]).
};

/// Sorts the suffixes of `entries` (T is uint16_t or uint32_t) by their first kSortDepth entries,
/// equal ones by position. After `entries` there must be kSortDepth readable separators. The result
/// does not depend on the number of threads. Once `*cancelled`, it ends soon with whatever. Beside
/// the result each thread takes 16 MB at most, and 4 bytes per token of the vocabulary.
template <typename T>
SuffixOrder SortSuffixes(std::span<const T> entries, int vocabulary, int threads,
                         const std::atomic<bool>* cancelled = nullptr);

}  // namespace foretoken
