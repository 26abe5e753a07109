#include "apps/foretoken/program/near_miss.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// As many wrong letters still make a name of this length recognisable.
int MostMistakes(std::size_t length) { return std::max(1, static_cast<int>(length * 2 / 5)); }

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between beginnings of `a` and of `b`; a swap looks two back.
  std::vector<int> before(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = Int(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = Int(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string NearMiss(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kTellingBeginning = 3;
  const std::string* nearest = nullptr;
  int distance = MostMistakes(name.size()) + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = name.size() >= kTellingBeginning && candidate.starts_with(name);
    const int mistakes = begins ? 0 : EditDistance(name, candidate);
    // Nothing of a name that is wrong in every letter is left to recognise.
    if (mistakes >= distance || mistakes >= std::ssize(candidate)) continue;
    nearest = &candidate;
    distance = mistakes;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

std::string Suggestion(std::string_view name, std::span<const std::string> candidates,
                       std::string_view prefix) {
  const std::string nearest = NearMiss(name, candidates);
  return nearest.empty() ? nearest : fmt::format("; did you mean {}{}?", prefix, nearest);
}

}  // namespace foretoken
