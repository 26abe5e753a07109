#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/engine/draft_exchange.h"
#include "core/engine/sequence.h"

namespace foretoken {

/// What other threads ask of an engine, until its own thread takes it; and the count of sequences
/// that have not ended, of which there are only so many places.
class Inbox {
 public:
  struct Mail {
    std::vector<std::unique_ptr<Sequence>> submitted;
    std::vector<std::pair<SequenceId, SpeculationPlan>> changed_plans;
    std::vector<SequenceId> cancelled;
    std::shared_ptr<DraftExchange> draft;  ///< Null: it stays.
  };

  explicit Inbox(int places) : places_(places) {}

  /// Places for so many sequences that are about to be submitted, with consecutive ids of which the
  /// first is returned; or none at all.
  Result<SequenceId> TakePlaces(int sequences);
  /// One sequence has ended.
  void FreePlace() { --taken_; }
  int taken() const { return taken_.load(); }

  void Submit(std::vector<std::unique_ptr<Sequence>> sequences);
  void ChangePlan(SequenceId sequence, const SpeculationPlan& plan);
  void Cancel(SequenceId sequence);
  /// In place of one that was not taken yet.
  void UseDraft(std::shared_ptr<DraftExchange> draft);

  /// Everything that has come since the last call, in order; cheap where that is nothing.
  Mail Take();

 private:
  const int places_;
  std::atomic<int> taken_ = 0;
  std::atomic<SequenceId> next_id_ = 1;
  std::atomic<bool> has_mail_ = false;
  std::mutex mutex_;
  Mail mail_;
};

}  // namespace foretoken
