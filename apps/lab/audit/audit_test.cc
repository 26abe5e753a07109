#include "apps/lab/audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

LoadRecord Answer(const std::string& text, int tokens) {
  LoadRecord record;
  record.text = text;
  record.counted_tokens = tokens;
  return record;
}

TEST(Audit, TheBaselineIsTheOneThatNothingHelps) {
  const std::vector<AuditCell> cells = AuditCells(/*switchable=*/true, 8);
  ASSERT_EQ(cells.size(), 5U);
  EXPECT_FALSE(cells[0].speculates);
  EXPECT_EQ(cells[0].at_once, 1);
  EXPECT_FALSE(cells[0].reuses);
  EXPECT_EQ(cells[4].at_once, 8);
  EXPECT_TRUE(cells[4].speculates);
  for (const AuditCell& cell : AuditCells(/*switchable=*/false, 4)) EXPECT_TRUE(cell.speculates);
}

TEST(Audit, DifferencesAreFoundWhereTheyBegin) {
  LoadRecord lost = Answer("", 0);
  lost.error = "http 500";
  lost.message = "oops";
  const std::vector<LoadRecord> baseline = {Answer("the cat sat", 3), Answer("same", 1),
                                            Answer("cut", 4), Answer("x", 1)};
  const AuditResult result = Compare(
      {"cell"}, baseline, {Answer("the cow sat", 3), Answer("same", 1), Answer("cut", 5), lost});
  EXPECT_EQ(result.same, 1);
  EXPECT_EQ(result.failed, 1);
  ASSERT_EQ(result.differences.size(), 2U);
  EXPECT_EQ(result.differences[0].prompt, 0U);
  EXPECT_EQ(result.differences[0].at, 5U);
  EXPECT_EQ(result.differences[1].at, 3U);  // As long a text of more tokens is another answer.
  const std::string text = RenderAudit(AuditJson({result}));
  EXPECT_THAT(text, HasSubstr("prompt 1, after 5 bytes"));
  EXPECT_THAT(text, HasSubstr("the cow sat"));
  EXPECT_THAT(text, HasSubstr("http 500: oops"));
  EXPECT_THAT(text, HasSubstr("not lossless"));
}

TEST(Audit, NothingLostIsSaid) {
  const std::vector<LoadRecord> answers = {Answer("é", 1), Answer("b", 1)};
  const auto audit = AuditJson({Compare({"cell"}, answers, answers)});
  EXPECT_TRUE(audit["lossless"].get<bool>());
  EXPECT_THAT(RenderAudit(audit), HasSubstr("no loss was seen"));
}

}  // namespace
}  // namespace foretoken
