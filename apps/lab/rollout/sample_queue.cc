#include "apps/lab/rollout/sample_queue.h"

#include <algorithm>

namespace foretoken {

SampleQueue::SampleQueue(int prompts, int samples)
    : prompts_(prompts), left_(static_cast<std::int64_t>(prompts) * samples) {
  for (int index = 0; index < prompts; ++index) {
    std::vector<int>& left = prompts_[index].left;
    for (int sample = samples; sample-- > 0;) left.push_back(sample);
    Enter(index);
  }
}

void SampleQueue::Enter(int index) {
  const Prompt& prompt = prompts_[index];
  if (!MayBegin(prompt)) return;
  if (prompt.finished > 0) {
    known_.emplace(-prompt.Mean(), index);
  } else {
    unknown_.insert(index);
  }
}

void SampleQueue::Leave(int index) {
  const Prompt& prompt = prompts_[index];
  if (prompt.finished > 0) known_.erase({-prompt.Mean(), index});
  unknown_.erase(index);
}

void SampleQueue::Skip(SampleToDo sample, int tokens) {
  Leave(sample.prompt);
  left_ -= std::erase(prompts_[sample.prompt].left, sample.sample);
  Enter(sample.prompt);
  Finished(sample.prompt, tokens);
}

int SampleQueue::Choose() const {
  if (known_.empty()) return unknown_.empty() ? -1 : *unknown_.begin();
  const double average = static_cast<double>(tokens_) / static_cast<double>(finished_);
  const auto& [longest, index] = *known_.begin();
  return unknown_.empty() || -longest >= average ? index : *unknown_.begin();
}

std::optional<SampleToDo> SampleQueue::Next() {
  const int index = Choose();
  if (index < 0) return std::nullopt;
  Leave(index);
  Prompt& prompt = prompts_[index];
  const SampleToDo next{index, prompt.left.back()};
  prompt.left.pop_back();
  --left_;
  prompt.waits = !prompt.begun;
  prompt.begun = true;
  Enter(index);
  return next;
}

void SampleQueue::Computed(int index) {
  Leave(index);
  prompts_[index].waits = false;
  Enter(index);
}

void SampleQueue::Finished(int index, int tokens) {
  Leave(index);
  Prompt& prompt = prompts_[index];
  prompt.tokens += tokens;
  ++prompt.finished;
  Enter(index);
  tokens_ += tokens;
  ++finished_;
}

}  // namespace foretoken
