#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/engine.h"
#include "door/assembly/loaded_model.h"
#include "door/learning/held_back.h"
#include "door/learning/traffic.h"
#include "foretoken/stats.h"

namespace foretoken {

/// Lets an engine's draft follow its traffic (docs/do/train_a_drafter.md, Online): writes captures
/// of it into `captures` of a folder, judges what a trainer puts into `candidates` by texts that
/// were held back, and has the engine draft with what is better. Neither trainer nor engine waits
/// for the other. Its own thread does the work; the engine's only copies texts.
class DraftLearner {
 public:
  /// The candidate of `folder` that was in use last; none where none was better than the draft that
  /// an engine began with.
  static std::optional<std::filesystem::path> InUse(const std::filesystem::path& folder);
  /// `draft` with a candidate's folder in place of its own.
  static DraftOptions At(const std::filesystem::path& candidate, DraftOptions draft);

  /// For engines over `target` whose passes keep `taps`, and whose draft is `draft`.
  static Result<std::unique_ptr<DraftLearner>> Make(LoadedModel* target, DraftOptions draft,
                                                    const TapShape& taps,
                                                    const LearningOptions& options, LogSink log);
  ~DraftLearner();

  /// EngineConfig::when_decoded.
  void Take(const DecodedText& text) { traffic_->Take(text); }
  /// From now on the engine's draft is looked after, until End.
  void Begin(Engine* engine);
  /// Before the engine goes.
  void End();

  /// Thread-safe.
  LearningReport report() const;

 private:
  DraftLearner(LoadedModel* target, DraftOptions draft, TapShape taps, LearningOptions options,
               LogSink log);
  // Whoever watches the first loading does not watch those of this thread.
  static DraftOptions WithoutProgress(DraftOptions draft);
  void Run();
  void Look();
  void JudgeNewest();
  void LookBack();
  bool Use(const std::string& candidate);
  void Decide(const std::string& candidate, bool kept, DraftScore other, DraftScore in_use,
              std::size_t texts);
  std::string Newest() const;
  DraftOptions OptionsOf(const std::string& candidate) const;
  // What the texts say of a candidate; empty where it cannot be loaded, of which a sentence is
  // logged.
  std::vector<DraftScore> ScoresOf(const std::string& candidate,
                                   std::span<const std::shared_ptr<const StatedText>> texts);
  void Log(const std::string& sentence) const;

  LoadedModel* const target_;
  const DraftOptions first_;  // What the engine was opened with, before anything was learned.
  const TapShape taps_;
  const LearningOptions options_;
  const LogSink log_;
  std::unique_ptr<Traffic> traffic_;
  Engine* engine_ = nullptr;
  int lookahead_ = 0;

  // The thread's only. Candidates by their names; "": the first draft.
  std::string in_use_;
  std::string judged_;                   // The last one.
  std::optional<std::string> previous_;  // While it may yet come back.
  std::int64_t held_back_then_ = 0;      // When it was replaced.
  std::shared_ptr<NextDraft> next_;      // Until the engine has taken it.

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  LearningReport report_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace foretoken
