#include "prediction/cost_model.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(CostModel, NamesTheProposerOfAFallback) {
  const CostModel model;
  EXPECT_EQ(model.proposer(Fallback::kJit), &model.draft_model);
  EXPECT_EQ(model.proposer(Fallback::kNgram), &model.ngram);
  EXPECT_EQ(model.proposer(Fallback::kRetrieval), &model.retrieval);
  EXPECT_EQ(model.proposer(Fallback::kRandom), &model.random);
  EXPECT_EQ(model.proposer(Fallback::kNone), nullptr);
  EXPECT_EQ(model.proposer(Mode::kSsd), &model.draft_model);
  EXPECT_EQ(model.proposer(Mode::kSssd), &model.retrieval);
  EXPECT_EQ(model.proposer(Mode::kAr), nullptr);
}

}  // namespace
}  // namespace foretoken
