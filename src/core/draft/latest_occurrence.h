#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "foretoken/types.h"

namespace foretoken {

/// Where a text goes on that the last `length` of `tokens`, which are not empty, and a `path`
/// behind them end with: the latest place within `tokens` before their own end; 0: nowhere.
inline std::size_t LatestOccurrence(std::span<const Token> tokens, std::span<const Token> path,
                                    std::size_t length) {
  if (tokens.size() + path.size() <= length) return 0;
  const std::size_t of_path = std::min(length, path.size());
  const auto end = path.last(of_path);
  const auto before = tokens.last(length - of_path);
  for (std::size_t place = tokens.size() - 1; place >= length; --place) {
    const auto found = tokens.subspan(place - length, length);
    if (std::ranges::equal(end, found.last(of_path)) &&
        std::ranges::equal(before, found.first(before.size()))) {
      return place;
    }
  }
  return 0;
}

}  // namespace foretoken
