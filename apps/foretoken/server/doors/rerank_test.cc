#include "apps/foretoken/server/doors/doors.h"

#include <cmath>

#include "apps/foretoken/server/doors/door_testing.h"

namespace foretoken::server {
namespace {

using ::testing::HasSubstr;

ApiRequest ReadRerankBody(const std::string& body) { return MustRead(RerankDoor(), body); }

Burst Said(int choice, float logprob, int prompt_tokens) {
  Burst burst{.choice = choice};
  burst.tokens.emplace_back().logprobs = {{.token = 1, .logprob = logprob}};
  burst.ending = Ending{FinishReason::kMaxTokens, {.prompt_tokens = prompt_tokens}, Mode::kAr};
  return burst;
}

// What is answered where the model says so of three documents.
Json RerankAnswer(const ApiRequest& request) {
  const auto writer = RerankDoor().writer(request, {.model = "m"}, nullptr);
  std::string out;
  const float yes[] = {-3, -0.5F, -1};
  const float no[] = {-0.5F, -3, -1};
  for (int i = 0; i < 3; ++i) writer->Add(Said(i, yes[i], 10 + i), &out);
  for (int i = 0; i < 3; ++i) writer->Add(Said(3 + i, no[i], 10 + i), &out);
  EXPECT_EQ(out, "");
  writer->End(&out);
  return Json::Parse(out);
}

TEST(RerankDoor, AsksTwiceAboutEachDocument) {
  const ApiRequest request =
      ReadRerankBody(R"({"query":"Q","documents":["A",{"text":"B"}],"top_n":1,"instruction":"I"})");
  ASSERT_EQ(request.prompts.size(), 4U);
  EXPECT_EQ(std::get<std::string>(request.prompts[1]), "<Instruct>: I\n<Query>: Q\n<Document>: B");
  EXPECT_EQ(std::get<std::string>(request.prompts[3]), std::get<std::string>(request.prompts[1]));
  EXPECT_EQ(request.stop.max_tokens, 1);
  EXPECT_EQ(request.sampling.top_logprobs, 0);
  EXPECT_EQ(request.rank->most, 1);
  EXPECT_TRUE(request.ignored.empty());
}

TEST(RerankDoor, TheBestComeFirst) {
  const Json all = RerankAnswer(ReadRerankBody(R"({"query":"Q","documents":["A","B","C"]})"));
  EXPECT_EQ(all["usage"]["prompt_tokens"], 33);
  ASSERT_EQ(all["results"].size(), 3U);
  EXPECT_EQ(all["results"][0]["index"], 1);
  EXPECT_EQ(all["results"][1]["index"], 2);
  EXPECT_NEAR(all["results"][0]["relevance_score"], 1 / (1 + std::exp(-2.5)), 1e-6);
  EXPECT_EQ(all["results"][1]["relevance_score"], 0.5);
  EXPECT_FALSE(all["results"][0].contains("document"));

  const Json best = RerankAnswer(ReadRerankBody(
      R"({"query":"Q","documents":["A","B","C"],"top_n":2,"return_documents":true})"));
  ASSERT_EQ(best["results"].size(), 2U);
  EXPECT_EQ(best["results"][0]["document"]["text"], "B");

  const Json plain =
      RerankAnswer(ReadRerankBody(R"({"query":"Q","texts":["A","B","C"],"return_text":true})"));
  ASSERT_EQ(plain.size(), 3U);
  EXPECT_EQ(plain[0]["text"], "B");
  EXPECT_EQ(plain[1]["score"], 0.5);
}

TEST(RerankDoor, RefusesWhatItCannotRead) {
  const auto refused = [](const std::string& body, const std::string& field) {
    ExpectRefused(RerankDoor(), body, field, "must be");
  };
  refused(R"({"documents":["A"]})", "query");
  refused(R"({"query":"","documents":["A"]})", "query");
  refused(R"({"query":"Q"})", "documents");
  refused(R"({"query":"Q","documents":[]})", "documents");
  refused(R"({"query":"Q","documents":[{}]})", "documents[0].text");
  refused(R"({"query":"Q","documents":["A"],"top_n":0})", "top_n");
}

}  // namespace
}  // namespace foretoken::server
