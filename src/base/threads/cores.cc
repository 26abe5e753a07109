#include "base/threads/cores.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>

#include "base/text/utf8.h"

namespace foretoken {
namespace {

// More than any machine has, and a bound on what a range such as "0-999999999" may expand to.
constexpr int kMaxCores = 4096;

// An affinity mask large enough for the kernel, which refuses smaller ones on large machines.
using AffinityMask = std::array<cpu_set_t, kMaxCores / CPU_SETSIZE>;

// Cores that share a physical core have the same list of siblings; without /sys each core is its
// own.
std::string SiblingsOf(int core) {
  std::ifstream file(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", core));
  std::string siblings;
  if (!std::getline(file, siblings) || siblings.empty()) return fmt::format("{}", core);
  return siblings;
}

std::vector<int> DetectCores() {
  AffinityMask mask = {};
  if (sched_getaffinity(0, sizeof(mask), mask.data()) != 0) return {0};
  // The n-th thread of every physical core comes before the (n+1)-th of any.
  std::map<std::string, int> threads_seen;
  std::vector<std::pair<int, int>> ranked;
  for (int core = 0; core < kMaxCores; ++core) {
    if (!CPU_ISSET_S(core, sizeof(mask), mask.data())) continue;
    ranked.emplace_back(threads_seen[SiblingsOf(core)]++, core);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<int> cores;
  for (const auto& [rank, core] : ranked) cores.push_back(core);
  return cores;
}

// Takes a number off the front of `text`.
bool TakeNumber(std::string_view* text, int* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc() || *number < 0 || *number >= kMaxCores) return false;
  text->remove_prefix(end - text->data());
  return true;
}

Error BadCores(std::string_view text, std::string_view reason) {
  return Invalid("core list '{}': {}; write it like 0, 0-3 or 0-3,8", text, reason);
}

}  // namespace

Result<CoreSet> ParseCores(std::string_view text) {
  CoreSet cores;
  std::string_view rest = text;
  while (true) {
    int first = 0;
    if (!TakeNumber(&rest, &first)) return BadCores(text, "a core number is missing or too large");
    int last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (!TakeNumber(&rest, &last)) return BadCores(text, "the end of a range is missing");
    }
    if (last < first) return BadCores(text, fmt::format("range {}-{} descends", first, last));
    for (int core = first; core <= last; ++core) {
      if (!cores.empty() && core <= cores.back()) {
        return BadCores(text, fmt::format("core {} is repeated or out of order", core));
      }
      cores.push_back(core);
    }
    if (rest.empty()) break;
    if (!rest.starts_with(','))
      return BadCores(text, fmt::format("unexpected '{}'", Shortened(rest, 20)));
    rest.remove_prefix(1);
  }
  const std::vector<int> available = AvailableCores();
  for (const int core : cores) {
    if (std::find(available.begin(), available.end(), core) == available.end()) {
      CoreSet sorted = available;
      std::sort(sorted.begin(), sorted.end());
      return Invalid("core {} is not available to this process; it may use {}", core,
                     FormatCores(sorted));
    }
  }
  return cores;
}

std::string FormatCores(const CoreSet& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cores[i]) : fmt::format("{}-{}", cores[i], cores[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> AvailableCores() {
  static const std::vector<int> cores = DetectCores();
  return cores;
}

std::vector<int> AvailablePhysicalCores() {
  std::map<std::string, int> seen;
  std::vector<int> cores;
  for (const int core : AvailableCores()) {
    if (seen[SiblingsOf(core)]++ == 0) cores.push_back(core);
  }
  return cores;
}

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

CoreSplit DefaultCoreSplit(const std::vector<int>& available) {
  FT_CHECK(!available.empty());
  CoreSplit split;
  if (available.size() == 1) return {available, available};
  const std::size_t draft = std::max<std::size_t>(1, available.size() / 8);
  split.target.assign(available.begin(), available.end() - draft);
  split.draft.assign(available.end() - draft, available.end());
  std::sort(split.target.begin(), split.target.end());
  std::sort(split.draft.begin(), split.draft.end());
  return split;
}

void PinThread(pthread_t thread, int core) {
  (void)AvailableCores();  // Found before the mask is narrowed.
  AffinityMask mask = {};
  CPU_SET_S(core, sizeof(mask), mask.data());
  // A refusal only costs speed.
  (void)pthread_setaffinity_np(thread, sizeof(mask), mask.data());
}

void PinCurrentThread(int core) { PinThread(pthread_self(), core); }

void UnpinCurrentThread() {
  AffinityMask mask = {};
  for (const int core : AvailableCores()) CPU_SET_S(core, sizeof(mask), mask.data());
  (void)pthread_setaffinity_np(pthread_self(), sizeof(mask), mask.data());
}

}  // namespace foretoken
