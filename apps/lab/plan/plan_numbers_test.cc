#include "apps/lab/plan/plan_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(PlanNumbers, ReadsPoints) {
  EXPECT_THAT(*ParsePoints("12.5", "--x"), ElementsAre(Pair(1, 12.5)));
  EXPECT_THAT(*ParsePoints("1:12.5, 16:1.4e1", "--x"), ElementsAre(Pair(1, 12.5), Pair(16, 14)));
  for (const char* bad : {"", "x", "1:", ":1", "1:2,3", "0:1", "1.5:1", "1:inf", "1:2x"}) {
    const auto points = ParsePoints(bad, "--x");
    ASSERT_FALSE(points.ok()) << bad;
    EXPECT_THAT(points.error().message, HasSubstr("--x")) << bad;
  }
}

TEST(PlanNumbers, GivenNumbersReplaceThePresets) {
  PlanNumbers numbers;
  const SimulatorPreset papers = *numbers.Resolve();
  EXPECT_EQ(papers.description,
            "Llama-3.1-70B on 4 H100s, Llama-3.2-1B on 1, as published (fitted)");
  numbers.preset = "paper-70b";
  numbers.target_ms = "1:10,3:20";
  const SimulatorPreset mixed = *numbers.Resolve();
  EXPECT_EQ(mixed.model.target.us(2, 100), 15000);
  EXPECT_EQ(mixed.model.first_draft().apart.us(4, 100),
            papers.model.first_draft().apart.us(4, 100));
  numbers.preset.clear();
  EXPECT_THAT(numbers.Resolve().error().message, HasSubstr("--draft-ms is missing"));
}

TEST(PlanNumbers, AnyOfThemIsGivenInPlaceOfMeasuring) {
  EXPECT_FALSE(PlanNumbers().given());
  // These say what to plan for, not how fast anything is.
  EXPECT_FALSE((PlanNumbers{.lookaheads = "2,4"}).given());
  EXPECT_TRUE((PlanNumbers{.preset = "paper-32b"}).given());
  EXPECT_TRUE((PlanNumbers{.hit_at_end = "0.5"}).given());
  EXPECT_TRUE((PlanNumbers{.ngram_acceptance = "0.5"}).given());
}

TEST(PlanNumbers, NumbersAloneAreAModel) {
  const PlanNumbers numbers = {.target_ms = "10",
                               .draft_ms = "1",
                               .acceptance = "0.9,0.8",
                               .hit = "0.5,0.7",
                               .hit_at_end = "0.6"};
  const CostModel model = numbers.Resolve()->model;
  EXPECT_EQ(model.first_draft().on_target.us(1, 1), 1000);
  EXPECT_EQ(model.proposers[DrafterId::kModel].acceptance[1], 0.8);
  EXPECT_DOUBLE_EQ(model.proposers[DrafterId::kModel].curves.partial.hit(2), 0.7);
  EXPECT_DOUBLE_EQ(model.proposers[DrafterId::kModel].curves.full.hit(1), 0.6);
  EXPECT_FALSE(model.proposers[DrafterId::kNgram].measured());
}

}  // namespace
}  // namespace foretoken
