#pragma once

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/sequence.h"
#include "core/kv/kv_cache.h"

namespace foretoken {

/// Decides who runs: admission, preemption by recomputation, and the KV of the running sequences.
/// Belongs to the engine's thread.
class Scheduler {
 public:
  Scheduler(const KvRoom& room, bool prefix_cache, int max_batch);

  void Enqueue(std::unique_ptr<Sequence> sequence) { waiting_.push_back(std::move(sequence)); }

  /// Where all places are taken, somebody of a group waits that has none, and another group has two
  /// or more: the youngest of the largest group gives way. True: somebody did.
  bool MakeWay();

  /// Moves waiting sequences into the running set while there is room for what they have to
  /// compute, those first whose group has the fewest running, then the oldest; and takes their
  /// cached prefix. Returns the new ones, until the next call.
  std::span<const std::unique_ptr<Sequence>> Admit();

  /// Makes room for `length` positions of `sequence`, preempting the youngest running sequences if
  /// need be. False when `sequence` itself had to give way.
  bool Reserve(Sequence* sequence, std::int32_t length);

  /// Gives the youngest running sequence's KV back and puts it at the head of the queue.
  void PreemptYoungest() {
    if (!running_.empty()) Preempt(running_.end() - 1);
  }

  /// Takes a finished sequence out, releasing its KV.
  std::unique_ptr<Sequence> Remove(Sequence* sequence);

  /// Blocks that somebody holds between two rounds who is no sequence: they are given back where a
  /// running sequence finds no others, so `guest` may be empty the next time. It is entered until
  /// RemoveGuest, which gives them back too.
  void AddGuest(SequenceKv* guest) { guests_.push_back(guest); }
  void RemoveGuest(SequenceKv* guest);

  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }
  const std::deque<std::unique_ptr<Sequence>>& waiting() const { return waiting_; }
  KvCache& kv() { return kv_; }
  const KvCache& kv() const { return kv_; }

 private:
  using Place = std::vector<std::unique_ptr<Sequence>>::iterator;

  void Preempt(Place place);
  // False: none had any blocks.
  bool TakeFromGuests();
  int RunningOf(std::uint64_t group) const;
  // Who is to run next, and how many its group has running.
  std::pair<std::size_t, int> Next() const;

  KvCache kv_;
  int max_batch_;
  std::vector<SequenceKv*> guests_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // Oldest first.
};

}  // namespace foretoken
