#pragma once

#include <cstdint>
#include <string>

namespace foretoken {

/// A tensor by its name without ".weight", one of those that make a matrix, and its outputs.
struct Part {
  std::string name;
  std::int64_t outputs;
  std::int64_t rotated = 0;  ///< Its leading outputs that are heads which are rotated.
  std::int64_t heads = 0;    ///< If not 0: its numbers are stored as [heads, width of a head].
  std::int64_t first = 0;    ///< The first output that is taken of a tensor of `all` outputs.
  std::int64_t all = 0;      ///< All outputs of the tensor; 0: every one is taken.
};

/// How heads lie in the outputs of a layer's queries and keys.
struct RotatedHeads {
  std::int64_t head_dim = 0;
  std::int64_t dims = 0;
};

}  // namespace foretoken
