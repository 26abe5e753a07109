#pragma once

#include <vector>

#include "base/check.h"
#include "foretoken/types.h"

namespace foretoken {

/// What a drafter keeps of each sequence that is decoded, in places that are made once and used
/// again. Few sequences: they are looked for one after the other. Not thread-safe.
template <typename Value>
class SequenceSlots {
 public:
  explicit SequenceSlots(int sequences) : slots_(sequences) {}

  std::size_t size() const { return slots_.size(); }

  /// The value of a sequence; where it has none yet, a place that none has, as it was left.
  Value& For(SequenceId sequence) {
    Slot* unused = nullptr;
    for (Slot& slot : slots_) {
      if (slot.used && slot.sequence == sequence) return slot.value;
      if (!slot.used) unused = &slot;
    }
    FT_CHECK(unused != nullptr, "more sequences than the drafter was made for");
    unused->used = true;
    unused->sequence = sequence;
    return unused->value;
  }

  /// Has `clear(value)` make the place ready for another sequence, if this one has one.
  template <typename Clear>
  void Forget(SequenceId sequence, Clear&& clear) {
    for (Slot& slot : slots_) {
      if (!slot.used || slot.sequence != sequence) continue;
      clear(slot.value);
      slot.used = false;
    }
  }

  /// Calls `visit(value)` for every place, used or not.
  template <typename Visit>
  void ForAll(Visit&& visit) {
    for (Slot& slot : slots_) visit(slot.value);
  }

 private:
  struct Slot {
    SequenceId sequence = 0;
    bool used = false;
    Value value;
  };
  std::vector<Slot> slots_;
};

}  // namespace foretoken
