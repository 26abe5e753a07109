#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/model.h"
#include "foretoken/request.h"
#include "foretoken/result.h"
#include "foretoken/speculation.h"
#include "foretoken/stats.h"

namespace foretoken {

/// Told, in one sentence each, of what is worth a warning but no failure. May be empty; called from
/// the thread that notices.
using LogSink = std::function<void(std::string_view)>;

/// What the attention of a draft sees of a text: its last positions, and its first ones besides.
/// Models lean on these whatever they say (attention sinks: Xiao et al., 2309.17453).
struct DraftWindow {
  int positions = 0;  ///< The last ones, the row's own included; at least 1.
  int anchors = 4;    ///< The first ones.
};

/// A draft model of modes sd, ssd and auto. Where its tokens are not the target's they are
/// translated, as far as it has them.
struct DraftOptions {
  ModelSource source;
  /// The draft's cores in mode ssd; in mode sd it runs on the target's.
  std::vector<int> cores;
  std::optional<Precision> precision;  ///< As in LoadOptions.
  /// The format of the draft's own keys and values, as in LoadOptions.
  std::optional<KvFormat> kv;
  /// What the draft's attention sees, so that its cost and memory stay bounded; left out: as its
  /// model says.
  std::optional<DraftWindow> window;
  /// It reads and says texts, so that it may have any tokenizer; left out: where too few of its
  /// tokens are the target's.
  std::optional<bool> by_text;
  bool process = false;    ///< Mode ssd: in a process of its own, over shared memory.
  std::string executable;  ///< For `process`: the foretoken program.
  LoadProgress progress;   ///< Told how far its weights are loaded; may be null.
};

/// A draft that is trained on what its engine decodes, while it decodes
/// (docs/do/train_a_drafter.md).
struct LearningOptions {
  std::string folder;  ///< Where captures are written and a trainer puts what it has made.
  /// Bytes that captures may take on the disk; older ones go.
  std::size_t capture_bytes = std::size_t{1} << 30;
  int held_back_every = 8;  ///< One of so many texts is not trained on but judged by.
  int texts_to_judge = 8;   ///< How many texts must be held back before a draft is judged.
  double look_seconds = 1;  ///< Between two looks for what the trainer has made.
};

/// What an engine offers and how much it holds.
struct EngineOptions {
  std::vector<Mode> modes = {Mode::kAuto};  ///< Offered; the first is that of requests without one.
  PlanOptions plan;                         ///< The plan of requests that bring none.
  DraftOptions draft;
  /// Loaded beside it, for modes sd2, sd3 and auto, which chooses among all. They draft between two
  /// passes of the target only; of these options cores, process and executable do not count.
  std::vector<DraftOptions> further_drafts;
// Sizes, drafters that are made of others, verification and the log.
#define FORETOKEN_ENGINE_FIELD(type, name, value) type name = value;
#include "foretoken/tables/engine_fields.inc"
#undef FORETOKEN_ENGINE_FIELD
  /// The times that mode auto plans with are kept between runs, in the user's cache
  /// (foretoken/times in $XDG_CACHE_HOME, else ~/.cache), and so measured at the first start only.
  bool keep_times = false;
  /// The draft follows the traffic: begins as the last one of the folder that was better, else as
  /// `draft`, and becomes what a trainer makes of it where that drafts better.
  std::optional<LearningOptions> learning;
};

/// What an engine has become.
struct EngineLimits {
  int context = 0;
  int batch = 0;
  int queue = 0;
  int lookahead = 0;
  int cache_budget = 0;
  int knee_rows = 0;  ///< Rows that cost about as much as one, where that was measured; else 0.
};

/// A draft that is loaded and ready to take the place of an engine's (Engine::PrepareDraft).
class NextDraft {
 public:
  virtual ~NextDraft() = default;
  /// Whether the engine has taken it, so that this now holds the draft that the engine had.
  virtual bool taken() const = 0;
};

class DraftLearner;

/// Decodes many sequences together: continuous batching, chunked prefill, preemption, prefix
/// cache. Each sequence speculates by a plan of its own, so sequences of different modes share a
/// pass.
///
/// One thread calls Step; Submit, ChangePlan and Cancel may come from any thread.
class Engine {
 public:
  /// An engine over `target`, which it keeps. Loads the draft where a mode needs one, and measures
  /// what mode auto plans with. Refuses in one sentence what does not go together.
  static Result<std::unique_ptr<Engine>> Open(std::shared_ptr<LanguageModel> target,
                                              const EngineOptions& options);
  ~Engine();

  /// Queues a request, or says in one sentence why it can never run (kInvalidInput) or that the
  /// queue is full (kUnavailable).
  Result<SequenceId> Submit(Request request);

  /// Queues all of several requests or, where one of them would be refused, none.
  Result<std::vector<SequenceId>> SubmitAll(std::vector<Request> requests);

  /// From its next round on the sequence speculates by `plan`; unknown ids are ignored. An error
  /// where this engine cannot follow the plan.
  Status ChangePlan(SequenceId sequence, const PlanOptions& plan);

  /// Makes another draft ready for the modes of this engine that have one, beside its steps. It
  /// must read the same states of the target as the draft that the engine was opened with. From any
  /// thread, but only from one at a time.
  Result<std::shared_ptr<NextDraft>> PrepareDraft(const DraftOptions& draft) const;
  /// From its next round on the engine drafts with `draft`, which it has prepared; sequences go on,
  /// and what they emit does not change. Whoever keeps `draft` frees what the engine had before,
  /// which would else hold the engine up for a moment. From any thread.
  void UseDraft(std::shared_ptr<NextDraft> draft);

  /// Ends a request at the next step; unknown or finished ids are ignored.
  void Cancel(SequenceId sequence);

  /// One round: admit, forward, verify, emit. False when there was nothing to do.
  bool Step();

  /// Steps until nothing is left.
  void RunUntilIdle() {
    while (Step()) {
    }
  }

  /// Makes the calling thread the one that steps, on the target's first core. The first Step does;
  /// a thread that steps engines of several sets of cores does it whenever it changes.
  void Attach();

  EngineLimits limits() const;
  /// The plan of requests that bring none: mode, K, fan-out in numbers, fallback and tree width.
  PlanOptions plan() const;
  /// Whether requests may choose the mode.
  bool Offers(Mode mode) const;
  const EngineStats& stats() const;
  void ResetStats();
  /// What mode auto has decided and how its predictions fared; none without a planner.
  std::optional<PlannerReport> planner_report() const;
  /// What came of learning; none without. From any thread.
  std::optional<LearningReport> learning_report() const;
  KvUsage kv_usage() const;
  /// The same of their recent parts: the KV of layers that see a window of positions. None where
  /// the model has no such layers.
  KvUsage recent_kv_usage() const;
  /// Sequences in the batch, and those that wait for a place. As Step and stats(): the stepping
  /// thread's.
  int running() const;
  int waiting() const;
  /// With no sequence alive: every block is free or cached, and the counts add up.
  Status CheckIdle() const;

  // For the layers below.
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }
  void Keep(std::shared_ptr<LanguageModel> target, std::shared_ptr<DraftLearner> learner) {
    target_ = std::move(target);
    learner_ = std::move(learner);
  }

 private:
  std::shared_ptr<LanguageModel> target_;  // Outlives impl_.
  std::unique_ptr<Impl> impl_;
  std::shared_ptr<DraftLearner> learner_;  // Ends before impl_ does.
};

}  // namespace foretoken
