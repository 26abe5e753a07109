#include "core/engine/inbox.h"

#include <iterator>

namespace foretoken {

Result<SequenceId> Inbox::TakePlaces(int sequences) {
  const std::lock_guard lock(mutex_);
  if (taken_ + sequences > places_) {
    return Unavailable(
        "the queue is full: {} sequences run or wait, of {} that may, and this request brings {}; "
        "try again later",
        taken(), places_, sequences);
  }
  taken_ += sequences;
  return next_id_.fetch_add(static_cast<SequenceId>(sequences));
}

void Inbox::Submit(std::vector<std::unique_ptr<Sequence>> sequences) {
  const std::lock_guard lock(mutex_);
  mail_.submitted.reserve(mail_.submitted.size() + sequences.size());  // All or none.
  std::ranges::move(sequences, std::back_inserter(mail_.submitted));
  has_mail_ = true;
}

void Inbox::ChangePlan(SequenceId sequence, const SpeculationPlan& plan) {
  const std::lock_guard lock(mutex_);
  mail_.changed_plans.emplace_back(sequence, plan);
  has_mail_ = true;
}

void Inbox::Cancel(SequenceId sequence) {
  const std::lock_guard lock(mutex_);
  mail_.cancelled.push_back(sequence);
  has_mail_ = true;
}

void Inbox::UseDraft(std::shared_ptr<DraftExchange> draft) {
  const std::lock_guard lock(mutex_);
  mail_.draft = std::move(draft);
  has_mail_ = true;
}

Inbox::Mail Inbox::Take() {
  if (!has_mail_.exchange(false)) return {};
  const std::lock_guard lock(mutex_);
  return std::exchange(mail_, {});
}

}  // namespace foretoken
