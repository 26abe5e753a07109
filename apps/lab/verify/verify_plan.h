#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/sampling.h"

namespace foretoken {

/// Sampler options besides temperature and seed, with the text that named them.
struct SamplerSet {
  std::string name;
  SamplingParams params;
};

/// "none", or options joined by '+': "top-k=40+top-p=0.9+repeat-penalty=1.1". Options: top-k,
/// top-p, min-p, repeat-penalty, frequency-penalty, presence-penalty.
Result<SamplerSet> ParseSamplerSet(std::string_view text);

/// "0,0.7,1.0" and "1,4,16": refuses what is no number, negative (below 1 for integers) or empty.
Result<std::vector<float>> ParseTemperatures(std::string_view text);
Result<std::vector<int>> ParseBatches(std::string_view text);

/// The position of the first token that differs, counting a missing one; -1 where all agree.
int FirstDifference(const std::vector<int>& a, const std::vector<int>& b);

/// Process ids of this process's children, from /proc.
std::vector<int> ChildProcesses();

}  // namespace foretoken
