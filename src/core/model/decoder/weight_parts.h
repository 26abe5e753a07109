#pragma once

#include <cstdint>
#include <string>

namespace foretoken {

/// A tensor by its name without ".weight", one of those that make a matrix, and its outputs.
struct Part {
  std::string name;
  std::int64_t outputs;
  std::int64_t rotated = 0;  ///< Its leading outputs that are heads which are rotated.
  std::int64_t heads = 0;    ///< Of numbers that are stored as [heads, width of a head].
  std::int64_t first = 0;    ///< Of a tensor of `all` outputs, if not 0, those from this one on.
  std::int64_t all = 0;
};

/// How heads lie in the outputs of a layer's queries and keys.
struct RotatedHeads {
  std::int64_t head_dim = 0;
  std::int64_t dims = 0;
};

}  // namespace foretoken
