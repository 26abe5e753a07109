#pragma once

#include <cstdint>
#include <span>

#include "foretoken/types.h"

namespace foretoken {

/// The chain hash of a full block, from that of the block before it (0 for the first) and its own
/// kBlockSize tokens. It only narrows the search: what it finds is confirmed token by token.
using BlockHash = std::uint64_t (*)(std::uint64_t parent, std::span<const Token> tokens);

std::uint64_t HashBlock(std::uint64_t parent, std::span<const Token> tokens);

}  // namespace foretoken
