// The front door as a user of the library meets it: public headers only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/numbers/integers.h"
#include "foretoken/datastore.h"
#include "foretoken/engine.h"
#include "foretoken/generate.h"
#include "foretoken/json_schema.h"
#include "foretoken/model.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

ModelSource Bundled(const std::string& name) {
  return {.path = std::string(FORETOKEN_SOURCE_DIR) + "/models/" + name};
}

std::shared_ptr<LanguageModel> Target() {
  static const auto target = LanguageModel::Load({.source = Bundled("demo-target")});
  EXPECT_TRUE(target.ok()) << (target.ok() ? "" : target.error().message);
  return *target;
}

std::unique_ptr<Engine> OpenEngine(EngineOptions options) {
  options.draft.source = Bundled("demo-draft");
  auto engine = Engine::Open(Target(), options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  return std::move(engine).value();
}

Request Story(int max_tokens) {
  Request request;
  request.prompt = Target()->tokenizer()->Encode("Once upon a time", true, false);
  request.stop.max_tokens = max_tokens;
  return request;
}

TEST(Api, AModelTellsWhatItIs) {
  const ModelFacts& facts = Target()->facts();
  EXPECT_EQ(Target()->source().label(), "demo-target");
  EXPECT_EQ(facts.vocabulary, Target()->tokenizer()->vocabulary());
  EXPECT_EQ(facts.hidden, 256);
  EXPECT_GT(facts.parameters, 1'000'000);
  EXPECT_GT(facts.weight_bytes, Size(facts.parameters));
  EXPECT_GT(facts.kv_bytes_per_token, 0U);
  EXPECT_FALSE(facts.backend.empty());
}

TEST(Api, ModesGiveTheSameTokens) {
  const auto plain = OpenEngine({.modes = {Mode::kAr}, .max_batch = 1});
  const auto drafting =
      OpenEngine({.modes = {Mode::kSd}, .plan = {.lookahead = 4}, .max_batch = 1});
  const auto expected = Generate(*plain, Story(40));
  std::string streamed;
  const auto generation = Generate(
      *drafting, Story(40),
      {.on_token = [&](SequenceId, const EmittedToken& token) { streamed += token.text; }});
  ASSERT_TRUE(expected.ok() && generation.ok());
  EXPECT_EQ(generation->tokens, expected->tokens);
  EXPECT_EQ(streamed, generation->text);
  EXPECT_LT(generation->stats.rounds, expected->stats.rounds);
  EXPECT_EQ(drafting->limits().lookahead, 4);
  EXPECT_EQ(drafting->plan().mode, Mode::kSd);
}

TEST(Api, AModeThatIsNoneIsRefused) {
  const auto engine = Engine::Open(
      Target(), {.modes = {Mode{Schedule::kDuring, DrafterId::kNgram}}, .max_batch = 1});
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, HasSubstr("its drafter cannot"));
}

TEST(Api, SubmitsFromAnyThreadAndCancels) {
  class Listener : public RequestListener {
   public:
    void OnToken(SequenceId, const EmittedToken&) override { ++tokens; }
    void OnFinish(SequenceId, FinishReason why, const RequestStats&) override { reason = why; }
    int tokens = 0;
    FinishReason reason = FinishReason::kMaxTokens;
  } listener;
  const auto engine = OpenEngine({.modes = {Mode::kAr}, .max_batch = 1});
  Request request = Story(200);
  request.stop.ignore_eos = true;
  request.listener = &listener;
  SequenceId id = 0;
  std::thread([&] { id = engine->Submit(std::move(request)).value(); }).join();
  while (listener.tokens < 3) ASSERT_TRUE(engine->Step());
  engine->Cancel(id);
  engine->RunUntilIdle();
  EXPECT_EQ(listener.reason, FinishReason::kCancelled);
  EXPECT_LT(listener.tokens, 200);
  EXPECT_TRUE(engine->CheckIdle().ok());
}

TEST(Api, OutputsMatchAGrammar) {
  const auto engine = OpenEngine({.modes = {Mode::kAr}, .max_batch = 1});
  Request request = Story(64);
  const auto grammar = JsonSchemaGrammar(R"({"type": "boolean"})");
  ASSERT_TRUE(grammar.ok());
  request.sampling.constraint = Target()->CompileGrammar(*grammar).value();
  request.continues_text = false;
  const auto generation = Generate(*engine, std::move(request));
  ASSERT_TRUE(generation.ok());
  EXPECT_TRUE(generation->text == "true" || generation->text == "false") << generation->text;
}

TEST(Api, WhatACallerDoesWrongIsASentenceWithTheField) {
  EXPECT_THAT(LanguageModel::Load({.source = {.path = "/nowhere"}}).error().message,
              HasSubstr("/nowhere"));
  EXPECT_EQ(Engine::Open(Target(), {.modes = {}}).error().field, "modes");
  EXPECT_EQ(Engine::Open(Target(), {.modes = {Mode::kAr}, .plan = {.lookahead = 0}}).error().field,
            "lookahead");
  const auto engine = OpenEngine({.modes = {Mode::kAr}, .max_batch = 1});
  const auto refusal = [&](const Request& request) {
    return Generate(*engine, request).error().field;
  };
  Request request = Story(4);
  request.prompt.clear();
  EXPECT_EQ(refusal(request), "prompt");
  request = Story(4);
  request.plan = PlanOptions{.mode = Mode::kSsd};
  EXPECT_EQ(refusal(request), "mode");
  request = Story(4);
  request.sampling.logit_bias = {{-1, 1.0F}};
  EXPECT_EQ(refusal(request), "logit_bias");
}

}  // namespace
}  // namespace foretoken
