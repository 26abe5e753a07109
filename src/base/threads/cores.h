#pragma once

#include <pthread.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

/// A set of logical CPUs in ascending order, without repeats: what a CPU device is made of.
using CoreSet = std::vector<int>;

/// Parses "0", "0-3", "0-3,8": refuses empty, descending, repeated or unavailable cores.
Result<CoreSet> ParseCores(std::string_view text);

/// "0-3,8" for {0, 1, 2, 3, 8}.
std::string FormatCores(const CoreSet& cores);

/// The cores this process may use (its affinity mask at the first call or pinning), one per
/// physical core first, so that a prefix of the list never doubles up on a physical core while
/// another is free.
std::vector<int> AvailableCores();

/// The first available core of every physical core: what a device of bandwidth-bound work wants.
std::vector<int> AvailablePhysicalCores();

/// The processor's name as the system gives it; "unknown" where it does not.
std::string CpuModel();

/// How many of `available` go to the target and to the draft when the user does not say.
struct CoreSplit {
  CoreSet target;
  CoreSet draft;
};

/// The default split for SSD: the draft gets one core (one in eight on large machines), the target
/// the rest; on one core both share it.
CoreSplit DefaultCoreSplit(const std::vector<int>& available);

/// Pins the calling thread to one core. Threads and processes that it starts inherit that.
/// Failure (a container without permission) is harmless.
void PinCurrentThread(int core);

/// The same for another thread of this process, which runs.
void PinThread(pthread_t thread, int core);

/// Lets the calling thread run on every core that the process had at first.
void UnpinCurrentThread();

}  // namespace foretoken
