#include "core/prediction/cost_model.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(CostModel, NamesTheProposerOfAFallback) {
  const CostModel model;
  EXPECT_EQ(model.proposer(Fallback::kJit), &model.proposers[DrafterId::kModel]);
  EXPECT_EQ(model.proposer(Fallback::kNgram), &model.proposers[DrafterId::kNgram]);
  EXPECT_EQ(model.proposer(Fallback::kRetrieval), &model.proposers[DrafterId::kRetrieval]);
  EXPECT_EQ(model.proposer(Fallback::kRandom), &model.proposers[DrafterId::kRandom]);
  EXPECT_EQ(model.proposer(Fallback::kNone), nullptr);
  EXPECT_EQ(model.proposer(Mode::kSsd), &model.proposers[DrafterId::kModel]);
  EXPECT_EQ(model.proposer(Mode::kSssd), &model.proposers[DrafterId::kRetrieval]);
  EXPECT_EQ(model.proposer(Mode::kAr), nullptr);
}

}  // namespace
}  // namespace foretoken
