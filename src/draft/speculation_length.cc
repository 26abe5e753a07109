#include "draft/speculation_length.h"

#include <array>

#include "base/check.h"

namespace foretoken {

int SpeculationLength(int knee_rows, int batch) {
  FT_CHECK(knee_rows > 0 && batch > 0, "{} rows for {} sequences", knee_rows, batch);
  constexpr std::array kLengths = {32, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3};
  for (const int length : kLengths) {
    if (length <= knee_rows / batch) return length;
  }
  return 2;
}

int BranchLength(int speculation_length) {
  if (speculation_length <= 5) return speculation_length - 1;
  if (speculation_length <= 8) return 5;
  if (speculation_length <= 32) return 6;
  if (speculation_length <= 48) return 8;
  return 10;
}

}  // namespace foretoken
