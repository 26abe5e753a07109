#include "apps/lab/verify/verify_plan.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/foretoken/options/options.h"
#include "base/text/parse_number.h"

namespace foretoken {
namespace {

template <typename Number>
Result<std::vector<Number>> ParseNumberList(std::string_view option, std::string_view text,
                                            Number smallest) {
  std::vector<Number> numbers;
  for (const std::string& item : SplitList(text)) {
    Number number = 0;
    if (!ParseNumber(item, &number) || !(number >= smallest)) {
      return Invalid("{}: '{}' is not a number of at least {}", option, item, smallest);
    }
    numbers.push_back(number);
  }
  if (numbers.empty()) return Invalid("{} lists nothing", option);
  return numbers;
}

// The temperature is an option of its own.
constexpr std::string_view kTemperature = "temp";

}  // namespace

Result<SamplerSet> ParseSamplerSet(std::string_view text) {
  SamplerSet set{std::string(text), {}};
  if (text == "none") return set;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('+'));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || item.substr(0, equals) == kTemperature ||
        !SetSampling(item.substr(0, equals), item.substr(equals + 1), &set.params)) {
      std::vector<std::string_view> names = SamplingFlags();
      std::erase(names, kTemperature);
      return Invalid("--sampler-sets: '{}' is not of the form NAME=NUMBER with a name of {}", item,
                     fmt::join(names, ", "));
    }
    text.remove_prefix(std::min(item.size() + 1, text.size()));
  }
  return set;
}

Result<std::vector<float>> ParseTemperatures(std::string_view text) {
  return ParseNumberList<float>("--temps", text, 0.0F);
}

Result<std::vector<int>> ParseBatches(std::string_view text) {
  return ParseNumberList<int>("--batches", text, 1);
}

int FirstDifference(const std::vector<int>& a, const std::vector<int>& b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return in_a == a.end() && in_b == b.end() ? -1 : static_cast<int>(in_a - a.begin());
}

std::vector<int> ChildProcesses() {
  std::vector<int> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    int pid = 0;
    if (!ParseNumber(entry.path().filename().native(), &pid)) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    // "PID (NAME) STATE PARENT ...", where NAME may hold anything, parentheses too.
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 4 > stat.size()) continue;
    const std::string_view rest = std::string_view(stat).substr(name_end + 4);
    int parent = 0;
    if (ParseNumber(rest.substr(0, rest.find(' ')), &parent) && parent == getpid()) {
      children.push_back(pid);
    }
  }
  return children;
}

}  // namespace foretoken
