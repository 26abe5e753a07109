#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "assembly/measure_times.h"
#include "prediction/json/times_json.h"

namespace foretoken {

/// Where times are kept by default: foretoken/times in the user's cache ($XDG_CACHE_HOME, else
/// ~/.cache); empty where the user has none.
std::filesystem::path DefaultTimesFolder();

/// The measured times of an engine, kept between runs: a file for each machine, models, cores and
/// grid that they were measured with. A file that is damaged, of another version or old counts as
/// none, and one that cannot be written is not kept: nothing here fails.
class TimesCache {
 public:
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
  DraftTables tables_;
  std::string key_;
  std::filesystem::path path_;
};

}  // namespace foretoken
