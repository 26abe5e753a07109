#include "core/engine/inbox.h"

#include <gtest/gtest.h>

#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

TEST(Inbox, GivesPlacesToAllOrToNone) {
  Inbox inbox(3);
  ASSERT_TRUE(inbox.TakePlaces(2).ok());
  const auto refused = inbox.TakePlaces(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(inbox.taken(), 2);
  const auto last = inbox.TakePlaces(1);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(*last, 3U);  // Behind the two; the refused ones took no ids.
  inbox.FreePlace();
  EXPECT_TRUE(inbox.TakePlaces(1).ok());
}

TEST(Inbox, HandsEverythingOverOnce) {
  Inbox inbox(1);
  std::vector<std::unique_ptr<Sequence>> sequences;
  sequences.push_back(DecodingSequence(1, {1, 2}));
  inbox.Submit(std::move(sequences));
  inbox.ChangePlan(1, {.mode = Mode::kSd});
  inbox.Cancel(1);
  const Inbox::Mail mail = inbox.Take();
  EXPECT_EQ(mail.submitted.size(), 1U);
  EXPECT_EQ(mail.changed_plans.size(), 1U);
  EXPECT_EQ(mail.cancelled.size(), 1U);
  const Inbox::Mail nothing = inbox.Take();
  EXPECT_TRUE(nothing.submitted.empty() && nothing.cancelled.empty());
}

}  // namespace
}  // namespace foretoken
