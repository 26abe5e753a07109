#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "apps/foretoken/server/engine/core_turns.h"
#include "apps/foretoken/server/engine/live_request.h"
#include "apps/foretoken/server/observe/server_stats.h"
#include "base/result.h"
#include "foretoken/datastore.h"
#include "foretoken/engine.h"

namespace foretoken::server {

/// A model while it is served.
struct ServedModel {
  std::shared_ptr<LanguageModel> model;        ///< With a tokenizer.
  std::shared_ptr<DatastoreFolder> datastore;  ///< Null: there is none.
  /// For requests that name none; null where there is no datastore.
  std::shared_ptr<DatastoreTenant> tenant;
  std::unique_ptr<Engine> engine;
  std::vector<std::string> drafts;  ///< ModelSource::label of each, in kDraftModels' order.
  std::size_t longest_token = 0;    ///< Bytes of the vocabulary's longest.

  const Tokenizer& tokenizer() const { return *model->tokenizer(); }
};
/// Loads a model. Calls `pause` now and then, while others may compute on the model's cores.
using ModelLoader = std::function<Result<ServedModel>(const std::function<void()>& pause)>;

/// The one thread that loads a model and steps its engine, asleep while there is nothing to do;
/// and the register of the requests it works on. It computes when it is its turn. All but the
/// constructor and destructor may be called from any thread.
class EngineThread {
 public:
  EngineThread(ModelLoader load, CoreTurn turn);
  /// Aborts what is left, waits for it and joins.
  ~EngineThread();

  /// Waits until the model is loaded, or says why it could not be.
  Status AwaitLoaded();
  /// Once it is loaded. Of the engine only what may be called from any thread.
  const ServedModel& model() const { return model_; }

  /// Submits one sequence per choice; `requests` need no listeners. `at_once` of them are under way
  /// together, the others go in as these end. Refuses, as a whole, what can never run
  /// (kInvalidInput) and what finds the queue full (kUnavailable); but of those that go in later
  /// only what the first ones show, and the queue being full holds them up.
  Status Submit(const std::shared_ptr<LiveRequest>& live, std::vector<Request> requests,
                int at_once);
  /// Ends a request's sequences; its last bursts still come. Unknown or finished ones are ignored.
  void Abort(LiveRequest* live, AbortReason reason);
  void AbortAll(AbortReason reason);

  /// Does `work` on the engine's thread between two steps, as soon as it can, and returns when that
  /// is done. What `work` throws ends the server, as it does in a step.
  void Do(const std::function<void()>& work);

  /// Sequences that have not ended.
  int sequences() const { return sequences_.load(); }
  /// How long the engine has been at one step although there is work; 0 where there is none.
  double SecondsWithoutProgress() const;

  StatsRecorder& stats() { return stats_; }
  const StatsRecorder& stats() const { return stats_; }

 private:
  struct Entry {
    std::shared_ptr<LiveRequest> live;
    std::vector<SequenceId> sequences;
    std::deque<Request> later;  // Requests of the last choices.
    int at_once = 0;
  };

  void Run();
  bool Load();
  bool StepInTurn();
  void DoAsked();
  void PublishTouched();
  bool SubmitLater();
  bool SubmitMore(Entry* entry);
  void SleepUntilWoken();
  void Wake();

  const ModelLoader load_;
  CoreTurn turn_;  // The engine's thread only.
  ServedModel model_;
  StatsRecorder stats_;
  std::vector<LiveRequest*> touched_;  // The engine's thread only.

  // The time of the last step, or of work coming to an idle one.
  std::atomic<std::int64_t> progress_ns_ = 0;
  std::atomic<int> sequences_ = 0;

  std::mutex register_mutex_;
  std::unordered_map<LiveRequest*, Entry> register_;
  std::atomic<int> waiting_entries_ = 0;  // Entries with some for later.

  std::mutex wake_mutex_;
  std::condition_variable wake_cv_;
  std::condition_variable done_cv_;
  std::vector<const std::function<void()>*> asked_;  // By who waits in Do.
  std::uint64_t asked_in_all_ = 0;
  std::uint64_t done_in_all_ = 0;
  bool woken_ = false;
  bool stop_ = false;
  std::optional<Status> loaded_;  // None while it loads.
  std::thread thread_;            // Last: it uses all of the above.
};

}  // namespace foretoken::server
