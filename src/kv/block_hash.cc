#include "kv/block_hash.h"

#include <xxhash.h>

namespace foretoken {

std::uint64_t HashBlock(std::uint64_t parent, std::span<const Token> tokens) {
  return XXH64(tokens.data(), tokens.size_bytes(), parent);
}

}  // namespace foretoken
