#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "base/numbers/integers.h"
#include "core/datastore/datastore.h"
#include "foretoken/types.h"

namespace foretoken {

using Documents = std::vector<std::vector<Token>>;

/// Documents of `length` tokens on average whose tokens are skewed towards the small ones and
/// often repeat what came before, so that long matches occur.
inline Documents RandomDocuments(std::mt19937* random, int documents, int length, int vocabulary) {
  const auto below = [random](int n) { return static_cast<int>((*random)() % n); };
  Documents result(documents);
  std::vector<Token> all;
  for (auto& document : result) {
    const int tokens = below(2 * length);
    while (std::ssize(document) < tokens) {
      if (!all.empty() && below(3) == 0) {
        const int begin = below(Int(all.size()));
        const int end = std::min(begin + below(30), Int(all.size()));
        document.insert(document.end(), all.begin() + begin, all.begin() + end);
      } else {
        document.push_back(below(below(vocabulary) + 1));
      }
    }
    all.insert(all.end(), document.begin(), document.end());
  }
  return result;
}

/// The continuations of `pattern` in all documents, at most `length` tokens each, in the order of
/// the documents: the plainest way to find them.
inline Documents NaiveContinuations(const Documents& documents, const std::vector<Token>& pattern,
                                    std::size_t length) {
  Documents found;
  for (const auto& document : documents) {
    for (std::size_t i = 0; i + pattern.size() <= document.size(); ++i) {
      if (!std::equal(pattern.begin(), pattern.end(), document.begin() + i)) continue;
      const std::size_t begin = i + pattern.size();
      const std::size_t end = std::min(begin + length, document.size());
      found.emplace_back(document.begin() + begin, document.begin() + end);
    }
  }
  return found;
}

/// All documents of a snapshot, in order.
inline Documents DocumentsOf(const Snapshot& snapshot) {
  Documents documents;
  for (const auto& segment : snapshot.segments) {
    segment->VisitDocuments([&](std::span<const Token> document) {
      documents.emplace_back(document.begin(), document.end());
    });
  }
  return documents;
}

}  // namespace foretoken
