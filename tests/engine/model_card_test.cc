#include "foretoken/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/temporary_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(ModelCard, OfAFolder) {
  const Result<ModelCard> card = ReadModelCard({.path = BundledModel("demo-target")});
  ASSERT_TRUE(card.ok()) << card.error().message;
  EXPECT_FALSE(card->gguf);
  EXPECT_EQ(card->architecture, "llama");
  EXPECT_EQ(card->stored_as, "BF16");
  EXPECT_EQ(card->fingerprint.size(), 64U);
  EXPECT_EQ(card->parameters, BundledTarget()->model->config().parameters());
  EXPECT_EQ(card->max_context, 512);
  EXPECT_EQ(card->vocabulary, 2048);
  EXPECT_EQ(card->layers, 6);
  EXPECT_EQ(card->hidden, 256);
  EXPECT_EQ(card->intermediate, 768);
  EXPECT_EQ(card->heads, 4);
  EXPECT_EQ(card->kv_heads, 2);
  EXPECT_THAT(card->chat_template, HasSubstr("<|im_start|>"));
  EXPECT_FALSE(card->calls_tools);
  EXPECT_FALSE(card->thinks);
  EXPECT_FALSE(card->fills_gaps);
  EXPECT_FALSE(card->embeds);
  EXPECT_EQ(card->license, "");
}

TEST(ModelCard, AsItIsServed) {
  const std::string jinja =
      "{% if tools %}<tool_call>{% endif %}<think></think>{{ messages[0].content }}";
  const Result<ModelCard> card = ReadModelCard({.path = BundledModel("demo-target"),
                                                .weights = "q4_k_m",
                                                .chat_template = jinja,
                                                .context = 128,
                                                .call_form = "hermes"});
  ASSERT_TRUE(card.ok()) << card.error().message;
  EXPECT_EQ(card->stored_as, "Q4_K_M");
  EXPECT_EQ(card->max_context, 128);
  EXPECT_EQ(card->chat_template, jinja);
  EXPECT_TRUE(card->calls_tools);
  EXPECT_TRUE(card->thinks);
}

TEST(ModelCard, WhatLiesBesideTheWeights) {
  TemporaryFolder folder;
  fs::copy(BundledModel("demo-draft"), folder.path(), fs::copy_options::recursive);
  folder.Write("LICENSE", "You may.\n");
  fs::create_directory(folder.path() / "1_Pooling");
  const Result<ModelCard> card = ReadModelCard({.path = folder.path().string()});
  ASSERT_TRUE(card.ok()) << card.error().message;
  EXPECT_EQ(card->license, "You may.\n");
  EXPECT_TRUE(card->embeds);
}

TEST(ModelCard, OfNothing) {
  EXPECT_FALSE(ReadModelCard({.path = "/nowhere"}).ok());
  EXPECT_FALSE(ReadModelCard({.synthetic = "draft-12m"}).ok());
}

}  // namespace
}  // namespace foretoken
