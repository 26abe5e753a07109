#include "apps/lab/rollout/sample_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

using ::testing::ElementsAre;

// The samples that may begin now, as "PROMPT.SAMPLE".
std::vector<std::string> All(SampleQueue* queue) {
  std::vector<std::string> order;
  while (const auto next = queue->Next()) {
    order.push_back(std::to_string(next->prompt) + "." + std::to_string(next->sample));
  }
  return order;
}

TEST(SampleQueue, SiblingsWaitUntilTheirPromptIsComputed) {
  SampleQueue queue(2, 3);
  EXPECT_EQ(queue.left(), 6);
  EXPECT_THAT(All(&queue), ElementsAre("0.0", "1.0"));
  EXPECT_EQ(queue.left(), 4);
  queue.Computed(1);
  EXPECT_THAT(All(&queue), ElementsAre("1.1", "1.2"));
  queue.Computed(0);
  EXPECT_THAT(All(&queue), ElementsAre("0.1", "0.2"));
  EXPECT_EQ(queue.left(), 0);
}

TEST(SampleQueue, LongestExpectedFirst) {
  SampleQueue queue(4, 3);
  EXPECT_THAT(All(&queue), ElementsAre("0.0", "1.0", "2.0", "3.0"));
  for (int prompt = 0; prompt < 4; ++prompt) queue.Computed(prompt);
  queue.Finished(0, 10);
  queue.Finished(1, 90);
  queue.Finished(2, 50);
  // Nothing is known of 3: it counts as the average, 50, which 2 reaches.
  EXPECT_THAT(All(&queue), ElementsAre("1.1", "1.2", "2.1", "2.2", "3.1", "3.2", "0.1", "0.2"));
}

TEST(SampleQueue, LearnsFromEachThatFinishes) {
  SampleQueue queue(2, 4);
  EXPECT_THAT(All(&queue), ElementsAre("0.0", "1.0"));
  queue.Computed(0);
  queue.Computed(1);
  queue.Finished(0, 30);
  queue.Finished(1, 20);
  EXPECT_EQ(queue.Next()->prompt, 0);
  queue.Finished(0, 2);  // Its mean is 16 now.
  EXPECT_EQ(queue.Next()->prompt, 1);
}

TEST(SampleQueue, SkipsWhatIsThere) {
  SampleQueue queue(2, 2);
  queue.Skip({0, 0}, 5);
  queue.Skip({0, 1}, 5);
  queue.Skip({1, 0}, 90);
  queue.Skip({1, 0}, 90);  // Twice in a file.
  EXPECT_EQ(queue.left(), 1);
  EXPECT_THAT(All(&queue), ElementsAre("1.1"));
}

}  // namespace
}  // namespace foretoken
