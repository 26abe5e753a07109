#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/foretoken/common/command_line.h"
#include "base/result.h"
#include "base/threads/cores.h"
#include "json/json.h"

namespace foretoken {

/// How long a neighbour works, and then rests, in seconds: each time a length between the two, all
/// equally likely.
struct BurstLengths {
  double least_s = 0.5;
  double most_s = 3;
};

/// Reads "0.5-3", or "2" for lengths that are all alike; 0.01 to 3,600 seconds.
Result<BurstLengths> ParseBurstLengths(std::string_view text);

/// The stretches of one core: work and rest in turn, beginning with either. The same seed and core
/// give the same stretches.
class Bursts {
 public:
  Bursts(BurstLengths lengths, std::uint64_t seed, int core);

  /// Goes on to the next stretch and returns its length in nanoseconds.
  std::int64_t Next();
  /// Whether the stretch is one of work.
  bool working() const { return working_; }

 private:
  double Draw();

  BurstLengths lengths_;
  std::uint64_t seed_;
  std::uint64_t core_;
  std::uint64_t draws_ = 0;
  bool working_;
};

/// What the options say of a neighbour.
struct NeighbourOptions {
  std::string cores;  ///< Empty: there is none.
  std::string bursts = "0.5-3";
};

/// `--neighbour` and `--neighbour-bursts`.
void AddNeighbourOptions(CLI::App* command, NeighbourOptions* options);

/// Another program on this machine: where it works, and how.
struct NeighbourPlan {
  CoreSet cores;  ///< Empty: there is none.
  BurstLengths lengths;

  static Result<NeighbourPlan> Read(const NeighbourOptions& options);
  /// For the "meta" of a report; null where there is no neighbour.
  Json Describe() const;
  /// A line for a report's text; empty where there is none.
  std::string Sentence() const;
};

/// Keeps the plan's cores busy in bursts, with a thread on each, from its construction to its
/// destruction. The system shares a core between such a thread and an engine's as it would with
/// one of another program.
class Neighbour {
 public:
  Neighbour(const NeighbourPlan& plan, std::uint64_t seed);
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  void Work(int core, Bursts bursts);
  // Whether it ends before `deadline_ns`.
  bool Rest(std::int64_t deadline_ns);
  bool Ends();
  void Stop();

  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;  // Under mutex_.
  std::vector<std::thread> threads_;
};

}  // namespace foretoken
