#include "core/planner/mode_records.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ModeRecords, CorrectsByWhatCame) {
  ModeRecords records;
  EXPECT_EQ(records.correction(Mode::kSd), 1);
  for (int i = 0; i < 2000; ++i) records.Add(Mode::kSd, 1, 3, 1000, 4);
  EXPECT_NEAR(records.correction(Mode::kSd), 0.75, 0.02);
  EXPECT_EQ(records.correction(Mode::kSsd), 1);
  EXPECT_LT(records.doubt(Mode::kSd), records.doubt(Mode::kSsd));
  const ModeReport report = records.Report()[Mode::kSd];
  EXPECT_EQ(report.rounds, 2000);
  EXPECT_NEAR(report.tokens_per_second, 3000, 1e-6);
  EXPECT_NEAR(report.predicted, 4000, 1e-6);
}

// Nothing is corrected out of all proportion, and nothing for ever.
TEST(ModeRecords, CorrectionsHaveBoundsAndDecay) {
  ModeRecords records;
  for (int i = 0; i < 1000; ++i) records.Add(Mode::kSsd, 1, 1, 1000, 100);
  EXPECT_EQ(records.correction(Mode::kSsd), 0.25);
  for (int i = 0; i < 30'000; ++i) records.Add(Mode::kAr, 1, 1, 1000, 1);
  EXPECT_GT(records.correction(Mode::kSsd), 0.9);
}

}  // namespace
}  // namespace foretoken
