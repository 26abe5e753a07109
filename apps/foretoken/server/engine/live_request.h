#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "apps/foretoken/server/api/burst.h"
#include "apps/foretoken/server/observe/server_stats.h"
#include "foretoken/request.h"

namespace foretoken::server {

enum class Detail { kText, kTokens, kRounds };

/// Why a request ended before its choices did.
enum class AbortReason { kNone, kClientGone, kTimeout, kShutdown };

/// One API request while the engine works on it: the queue from the engine's thread to the one that
/// answers. The engine's thread stages what a round emits and publishes it once per step, so the
/// other wakes once per round. What waits in the queue is bounded by the context: a client that
/// takes nothing for the write timeout is cut off.
class LiveRequest {
 public:
  /// `choices` sequences, to be submitted with `listener(i)`.
  LiveRequest(int choices, Detail detail, StatsRecorder* recorder);

  RequestListener* listener(int choice) { return &choices_[choice]; }
  int choices() const { return choices_.size(); }

  // The thread that answers.

  /// Moves what has come to `bursts`, in place of what they held.
  void Take(std::vector<Burst>* bursts);
  /// Calls `wake` once, on the engine's thread, as soon as there is something to take (with `all`,
  /// as soon as all choices have ended). False, without a call, where there already is.
  bool Await(bool all, std::function<void()> wake);
  /// Whether every choice has ended and its last burst was taken.
  bool Finished();
  AbortReason abort_reason();

  // Any thread.

  /// Notes why; the first reason stays. Whoever calls this cancels the sequences.
  void NoteAbort(AbortReason reason);

  // The engine's thread.

  /// Choices that have not ended.
  int unfinished() const { return unfinished_; }
  /// Ends a choice that was not submitted, and will not be.
  void Skip(int choice);
  /// Gives what was staged to the thread that answers. True when that was the end of every choice.
  bool Publish();
  /// Keeps `places` until every choice has ended; set before it is submitted.
  void Hold(std::shared_ptr<void> places) { places_ = std::move(places); }
  /// Calls `told` with a choice and the tokens of its output when it ends; set before it is
  /// submitted.
  using Output = std::function<void(int choice, std::vector<Token> tokens)>;
  void TellOutputs(Output told) { told_ = std::move(told); }
  /// Where this request enters itself when it stages something; set before it is submitted.
  void set_touched(std::vector<LiveRequest*>* touched) { touched_ = touched; }

 private:
  class Choice final : public RequestListener {
   public:
    void OnPrompt(SequenceId sequence, const ScoredPrompt& prompt) override;
    void OnEmbedding(SequenceId sequence, std::span<const float> embedding) override;
    void OnRound(SequenceId sequence, const RoundRecord& round) override;
    void OnToken(SequenceId sequence, const EmittedToken& token) override;
    void OnFinish(SequenceId sequence, FinishReason reason, const RequestStats& stats) override;

    LiveRequest* owner = nullptr;
    int index = 0;
    Mode mode = Mode::kAr;
    int staged = -1;            ///< This choice's latest burst in staged_.
    std::vector<Token> output;  ///< Where somebody is to be told of it.
  };

  Burst& Stage(Choice* choice, bool fresh);
  Burst* Unsent(int choice);

  const Detail detail_;
  StatsRecorder* const recorder_;
  std::vector<Choice> choices_;

  // The engine's thread only.
  std::vector<LiveRequest*>* touched_ = nullptr;
  std::vector<Burst> staged_;
  int unfinished_;
  std::shared_ptr<void> places_;
  Output told_;  // May be null.

  std::mutex mutex_;
  std::function<void()> wake_;
  bool wake_at_end_ = false;  // And no earlier.
  std::vector<Burst> published_;
  bool ended_ = false;
  AbortReason abort_ = AbortReason::kNone;
};

}  // namespace foretoken::server
