#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretoken/types.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/span_interner.h"

namespace foretoken {

/// What a frame (threads of one rule, called from anywhere) lets through.
struct FrameMask {
  std::vector<std::uint64_t> bits;  ///< One per token, where there are many; else empty.
  std::vector<Token> tokens;        ///< Else.
  /// Trie nodes below which tokens go on after the rule's end: that depends on the caller.
  std::vector<std::int32_t> exits;
  std::int64_t steps = 0;  ///< TokenMask::steps that making it takes.
};

/// The masks of frames by the places of their threads, kept within bounds.
class FrameMasks {
 public:
  /// nullptr where it is not known.
  std::shared_ptr<const FrameMask> Find(std::span<const ProgramCounter> counters);
  std::shared_ptr<const FrameMask> Add(std::span<const ProgramCounter> counters, FrameMask mask);

 private:
  SpanInterner<ProgramCounter> keys_;
  std::vector<std::shared_ptr<const FrameMask>> masks_;  // Null: was looked for in vain.
  std::size_t bytes_ = 0;
};

}  // namespace foretoken
