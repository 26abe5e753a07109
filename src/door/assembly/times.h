#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/engine/engine.h"
#include "core/prediction/json/times_json.h"
#include "door/assembly/loaded_model.h"

namespace foretoken {

/// Which times an engine needs, and how thoroughly they are measured.
struct TimesNeeded {
  bool rows = false;   ///< What rows cost the target: row_times and knee_rows.
  bool costs = false;  ///< What the planner begins with.
  /// The longest that a sequence may be: a row that attends to more costs more.
  int context = 0;
  /// The most rows that a pass will have; the costs of more need not be known.
  int most_rows = 1;
  int sweeps = 1;  ///< How often each point is measured; more where noise matters.
};

/// Where a draft model is loaded; null: not there.
struct LoadedDraft {
  const LoadedModel* apart = nullptr;      ///< SSD's, on cores of its own.
  const LoadedModel* on_target = nullptr;  ///< SD's, on the target's device.
};

/// The models of an engine.
struct EngineModels {
  const LoadedModel* target = nullptr;
  ByDrafter<LoadedDraft> drafts;
};

/// Measures what is needed and not `known` yet: about a second for each of the models, nothing else
/// running on their cores.
MeasuredTimes MeasureTimes(const EngineModels& models, const TimesNeeded& needed,
                           MeasuredTimes known = {});

/// Where times are kept by default: foretoken/times in the user's cache ($XDG_CACHE_HOME, else
/// ~/.cache); empty where the user has none.
std::filesystem::path DefaultTimesFolder();

/// The measured times of an engine, kept between runs: a file for each machine, models, cores and
/// grid that they were measured with. A file that is damaged, of another version or old counts as
/// none, and one that cannot be written is not kept: nothing here fails.
class TimesCache {
 public:
  /// Rounds after which what was learned outweighs what an engine began with.
  static constexpr std::int64_t kRoundsToLearn = 300;

  /// The file of `folder` for an engine of these models. Keeps nothing where the folder is empty or
  /// no times are needed.
  TimesCache(const std::filesystem::path& folder, const EngineModels& models,
             const TimesNeeded& needed);

  /// What is kept; all that is needed, or nothing.
  std::optional<MeasuredTimes> Read() const;
  /// Keeps what has been measured just now.
  void Write(const MeasuredTimes& times) const;
  /// Brings what is kept, with which an engine began, closer to what its planner had learned in so
  /// many rounds, if these were enough to tell.
  void Refresh(const CostModel& learned, std::int64_t rounds) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Kept {
    MeasuredTimes times;
    int measured_day = 0;  // Since 1970.
  };
  std::optional<Kept> ReadKept() const;
  void WriteKept(const Kept& kept) const;

  TimesNeeded needed_;
  ByDrafter<DraftTables> tables_;
  std::string key_;
  std::filesystem::path path_;
};

}  // namespace foretoken
