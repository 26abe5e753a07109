#include "apps/lab/rollout/rollout_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/lab/rollout/sample_queue.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

constexpr std::int64_t kTailShare = 20;  // One of so many.

// A sample while it is decoded.
class Sampling : public RequestListener {
 public:
  // `tokens` counts those of all samples.
  Sampling(SampleToDo to_do, std::int64_t* tokens) : which(to_do), tokens_(tokens) {}

  void OnToken(SequenceId, const EmittedToken& token) override {
    sample.tokens.push_back(token.token);
    if (token.logprobs != nullptr) sample.logprobs.push_back(token.logprobs->front().logprob);
    sample.text += token.text;
    ++*tokens_;
  }
  void OnFinish(SequenceId, FinishReason reason, const RequestStats& stats) override {
    sample.finish = reason;
    sample.rounds = stats.rounds;
    sample.proposed = stats.proposed;
    sample.accepted = stats.accepted;
    finished = stats;
  }

  const SampleToDo which;
  SequenceId id = 0;
  bool computed = false;  // Its prompt, as the queue has been told.
  RolloutSample sample;
  std::optional<RequestStats> finished;

 private:
  std::int64_t* tokens_;
};

class RolloutRun {
 public:
  RolloutRun(const RolloutJob& job, Engine* engine, RolloutFile* file)
      : job_(job),
        engine_(engine),
        file_(file),
        queue_(Count(job.prompts), job.samples),
        tail_(job.tail) {}

  Result<RolloutReport> Take() {
    Skip();
    FT_RETURN_IF_ERROR(FitTail());
    ProgressBar bar("rollout", queue_.left());
    start_ = NowNs();
    Status status;
    engine_->Attach();
    while (true) {
      if (status.ok() && !Interrupted()) status = Fill();
      if (!status.ok() || Interrupted()) Cancel();
      if (running_.empty()) break;
      SpeculateOnFreeRows();
      engine_->Step();
      const std::size_t before = finishes_.size();
      if (const Status collected = Collect(); !collected.ok()) status = collected;
      bar.Advance(static_cast<std::int64_t>(finishes_.size() - before));
    }
    FT_RETURN_IF_ERROR(status);
    return Report();
  }

 private:
  struct Finish {
    std::int64_t at_ns = 0;
    std::int64_t tokens = 0;  // Tokens of all samples until then.
  };

  static int Count(const std::vector<RolloutPrompt>& prompts) {
    return static_cast<int>(prompts.size());
  }

  void Skip() {
    std::map<std::string, int> places;
    for (int i = 0; i < Count(job_.prompts); ++i) {
      places.emplace(job_.prompts[static_cast<std::size_t>(i)].id.dump(), i);
    }
    for (const FinishedSample& there : file_->finished()) {
      const auto place = places.find(there.prompt);
      if (place == places.end() || there.sample < 0 || there.sample >= job_.samples) continue;
      const std::int64_t left = queue_.left();
      queue_.Skip({place->second, there.sample}, there.tokens);
      report_.skipped += left - queue_.left();
    }
  }

  // Takes K down to what the engine can follow, before anything is decoded.
  Status FitTail() {
    while (tail_) {
      const auto longest = tail_->For(1);
      if (!longest) return {};
      // Nobody has that number: the plan is checked and changes nothing.
      const Status followed = engine_->ChangePlan(/*sequence=*/0, *longest);
      if (followed.ok()) return {};
      if (!tail_->fixed && tail_->lookahead > 1) {
        --tail_->lookahead;
      } else if (tail_->asked) {
        return followed;
      } else {
        tail_.reset();
      }
    }
    return {};
  }

  // Begins samples while there is room.
  Status Fill() {
    while (running_.size() < static_cast<std::size_t>(job_.batch)) {
      const auto next = queue_.Next();
      if (!next) return {};
      auto sampling = std::make_unique<Sampling>(*next, &tokens_);
      const RolloutPrompt& prompt = job_.prompts[static_cast<std::size_t>(next->prompt)];
      Request request = job_.request;
      request.prompt = prompt.tokens;
      request.continues_text = prompt.continues_text;
      request.sampling.seed = SampleSeed(job_.request.sampling.seed, prompt.id, next->sample);
      request.sampling.top_logprobs = 0;
      request.listener = sampling.get();
      sampling->sample.prompt = prompt.id;
      sampling->sample.sample = next->sample;
      sampling->sample.seed = request.sampling.seed;
      FT_ASSIGN_OR_RETURN(sampling->id, engine_->Submit(std::move(request)));
      running_.push_back(std::move(sampling));
    }
    return {};
  }

  void Cancel() {
    for (const auto& sampling : running_) engine_->Cancel(sampling->id);
  }

  // Once nothing is left to begin, whenever fewer run than before.
  void SpeculateOnFreeRows() {
    const int running = static_cast<int>(running_.size());
    if (!tail_ || queue_.left() > 0 || running == planned_for_) return;
    planned_for_ = running;
    const auto plan = tail_->For(running);
    if (!plan || plan->lookahead.value_or(0) == planned_) return;
    planned_ = plan->lookahead.value_or(0);
    for (const auto& sampling : running_) (void)engine_->ChangePlan(sampling->id, *plan);
  }

  Status Collect() {
    Status status;
    for (const auto& sampling : running_) {
      if (!sampling->computed && !sampling->sample.tokens.empty()) {
        sampling->computed = true;
        queue_.Computed(sampling->which.prompt);
      }
      if (!sampling->finished || sampling->sample.finish == FinishReason::kCancelled) continue;
      if (sampling->sample.finish == FinishReason::kNotFinite) {
        status = InvalidInput(NotFiniteMessage(job_.model));
        continue;
      }
      if (!sampling->computed) queue_.Computed(sampling->which.prompt);  // It ended at once.
      queue_.Finished(sampling->which.prompt, sampling->finished->output_tokens);
      report_.stats.AddCounts(*sampling->finished);
      finishes_.push_back({NowNs(), tokens_});
      if (status.ok()) status = file_->Add(sampling->sample);
    }
    std::erase_if(running_, [](const auto& sampling) { return sampling->finished.has_value(); });
    return status;
  }

  RolloutReport Report() {
    const auto all = static_cast<std::int64_t>(finishes_.size());
    report_.samples = all;
    report_.left =
        static_cast<std::int64_t>(job_.prompts.size()) * job_.samples - all - report_.skipped;
    if (all == 0) return report_;
    report_.total_ns = finishes_.back().at_ns - start_;
    report_.tail_samples = std::max<std::int64_t>(1, all / kTailShare);
    const Finish before = report_.tail_samples == all
                              ? Finish{start_, 0}
                              : finishes_[static_cast<std::size_t>(all - report_.tail_samples - 1)];
    report_.tail_ns = finishes_.back().at_ns - before.at_ns;
    report_.tail_tokens = tokens_ - before.tokens;
    return report_;
  }

  const RolloutJob& job_;
  Engine* engine_;
  RolloutFile* file_;
  SampleQueue queue_;
  std::optional<TailPlan> tail_;  // The plan, if the engine can follow it.
  std::vector<std::unique_ptr<Sampling>> running_;
  std::vector<Finish> finishes_;
  std::int64_t start_ = 0;
  std::int64_t tokens_ = 0;
  int planned_for_ = 0;  // The number of sequences that `planned_` is for, by SpeculateOnFreeRows.
  int planned_ = -1;     // The K of that plan; 0: what is chosen otherwise.
  RolloutReport report_;
};

}  // namespace

Result<RolloutReport> RunRollout(const RolloutJob& job, Engine* engine, RolloutFile* file) {
  return RolloutRun(job, engine, file).Take();
}

}  // namespace foretoken
