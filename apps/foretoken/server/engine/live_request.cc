#include "apps/foretoken/server/engine/live_request.h"

#include <algorithm>
#include <iterator>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

void Join(Burst burst, Burst* earlier) {
  earlier->text += burst.text;
  std::move(burst.tokens.begin(), burst.tokens.end(), std::back_inserter(earlier->tokens));
  earlier->embedding = std::move(burst.embedding);
  earlier->ending = burst.ending;
}

}  // namespace

LiveRequest::LiveRequest(int choices, Detail detail, StatsRecorder* recorder)
    : detail_(detail), recorder_(recorder), choices_(choices), unfinished_(choices) {
  for (int i = 0; i < choices; ++i) {
    choices_[i].owner = this;
    choices_[i].index = i;
  }
}

void LiveRequest::Take(std::vector<Burst>* bursts) {
  bursts->clear();
  const std::lock_guard lock(mutex_);
  bursts->swap(published_);
}

bool LiveRequest::Await(bool all, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  if (ended_ || (!all && !published_.empty())) return false;
  wake_ = std::move(wake);
  wake_at_end_ = all;
  return true;
}

bool LiveRequest::Finished() {
  const std::lock_guard lock(mutex_);
  return ended_ && published_.empty();
}

AbortReason LiveRequest::abort_reason() {
  const std::lock_guard lock(mutex_);
  return abort_;
}

void LiveRequest::NoteAbort(AbortReason reason) {
  const std::lock_guard lock(mutex_);
  if (abort_ == AbortReason::kNone) abort_ = reason;
}

bool LiveRequest::Publish() {
  const bool last = unfinished_ == 0;
  for (Choice& choice : choices_) choice.staged = -1;
  if (last) places_.reset();  // Before the client can know, and send the next request.
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    for (Burst& burst : staged_) {
      Burst* earlier = detail_ == Detail::kRounds ? nullptr : Unsent(burst.choice);
      if (earlier == nullptr) {
        published_.push_back(std::move(burst));
      } else {
        Join(std::move(burst), earlier);
      }
    }
    ended_ = last;
    if (last || !wake_at_end_) wake = std::exchange(wake_, nullptr);
  }
  staged_.clear();
  if (wake) wake();
  return last;
}

void LiveRequest::Skip(int choice) {
  Choice& skipped = choices_[choice];
  Stage(&skipped, /*fresh=*/false).ending = Ending{FinishReason::kCancelled, {}, skipped.mode};
  --unfinished_;
}

Burst* LiveRequest::Unsent(int choice) {
  const auto found = std::find_if(published_.begin(), published_.end(),
                                  [choice](const Burst& burst) { return burst.choice == choice; });
  return found == published_.end() ? nullptr : &*found;
}

Burst& LiveRequest::Stage(Choice* choice, bool fresh) {
  if (staged_.empty()) touched_->push_back(this);
  if (fresh || choice->staged < 0) {
    choice->staged = Int(staged_.size());
    staged_.push_back(Burst{.choice = choice->index});
  }
  return staged_[choice->staged];
}

void LiveRequest::Choice::OnPrompt(SequenceId, const ScoredPrompt& prompt) {
  std::vector<TokenPart>& parts = owner->Stage(this, /*fresh=*/false).prompt;
  for (std::size_t i = 0; i < prompt.tokens.size(); ++i) {
    TokenPart& part = parts.emplace_back();
    part.token = prompt.tokens[i];
    if (i > 0) part.logprobs = prompt.logprobs[i - 1];
  }
}

void LiveRequest::Choice::OnEmbedding(SequenceId, std::span<const float> embedding) {
  owner->Stage(this, /*fresh=*/false).embedding.assign(embedding.begin(), embedding.end());
}

void LiveRequest::Choice::OnRound(SequenceId, const RoundRecord& round) {
  mode = round.mode;
  owner->recorder_->AddRound(round);
  if (owner->detail_ != Detail::kRounds) return;
  Burst& burst = owner->Stage(this, /*fresh=*/true);
  burst.round = RoundTrace{.round = round.round,
                           .mode = mode,
                           .source = round.proposed.empty() ? ProposalSource::kNone : round.source,
                           .proposed = {round.proposed.begin(), round.proposed.end()},
                           .accepted = round.accepted,
                           .hit = round.hit,
                           .milliseconds = static_cast<double>(round.round_ns) / 1e6};
}

void LiveRequest::Choice::OnToken(SequenceId, const EmittedToken& token) {
  owner->recorder_->AddToken(mode, token.origin);
  if (owner->told_ != nullptr) output.push_back(token.token);
  Burst& burst = owner->Stage(this, /*fresh=*/false);
  burst.text += token.text;
  if (owner->detail_ == Detail::kText) return;
  TokenPart& part = burst.tokens.emplace_back();
  part.token = token.token;
  part.origin = token.origin;
  part.text_bytes = token.text.size();
  part.characters = CharactersIn(token.text);
  if (token.logprobs != nullptr) part.logprobs = *token.logprobs;
}

void LiveRequest::Choice::OnFinish(SequenceId, FinishReason reason, const RequestStats& stats) {
  owner->recorder_->AddFinished(mode, reason, stats);
  if (owner->told_ != nullptr) owner->told_(index, std::move(output));
  owner->Stage(this, /*fresh=*/false).ending = Ending{reason, stats, mode};
  --owner->unfinished_;
}

}  // namespace foretoken::server
