#include "core/draft/retrieval/speculation_length.h"

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

int KneeRows(std::span<const int> rows, std::span<const double> us) {
  FT_CHECK(!rows.empty() && rows.front() == 1 && rows.size() == us.size(), "{} and {} numbers",
           rows.size(), us.size());
  constexpr double kSlack = 1.25;
  const double limit = kSlack * us[0];
  // From above: one disturbed measurement in between does not end the flat part.
  std::size_t flat = us.size() - 1;
  while (us[flat] > limit) --flat;
  if (flat + 1 == us.size()) return rows.back();
  const double share = (limit - us[flat]) / (us[flat + 1] - us[flat]);
  return rows[flat] + static_cast<int>(share * (rows[flat + 1] - rows[flat]));
}

int BranchLength(int speculation_length) {
  if (speculation_length <= 5) return speculation_length - 1;
  if (speculation_length <= 8) return 5;
  if (speculation_length <= 32) return 6;
  if (speculation_length <= 48) return 8;
  return 10;
}

}  // namespace foretoken
