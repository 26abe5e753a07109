#include "apps/lab/rollout/rollout_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Json kHeader = {{"foretoken_rollout", 1},
                      {"target", "demo"},
                      {"weights", "0123456789abcdef0123"},
                      {"temperature", 1.0}};

RolloutSample Sample(int number) {
  return {.prompt = "p",
          .sample = number,
          .seed = 7,
          .tokens = {5, 6},
          .logprobs = {-0.25F, -0.1F},
          .text = "so",
          .finish = FinishReason::kMaxTokens,
          .rounds = 1,
          .proposed = 3,
          .accepted = 1};
}

std::string FileError(const std::filesystem::path& path, const Json& header) {
  const auto file = RolloutFile::Open(path, header);
  return file.ok() ? "" : file.error().message;
}

TEST(FormatSample, HasAllOfIt) {
  const std::string line = FormatSample(Sample(2), "abcd");
  EXPECT_TRUE(line.ends_with("}\n"));
  const Json sample = Json::Parse(line);
  EXPECT_EQ(sample["prompt"], "p");
  EXPECT_EQ(sample["sample"], 2);
  EXPECT_EQ(sample["seed"], 7);
  EXPECT_EQ(sample["tokens"], Json({5, 6}));
  EXPECT_THAT(line, HasSubstr("[-0.25,-0.1]"));
  EXPECT_NEAR(sample["logprob"].get<double>(), -0.35, 1e-6);
  EXPECT_EQ(sample["finish_reason"], "max_tokens");
  EXPECT_EQ(sample["weights"], "abcd");
}

TEST(FormatSample, WhatIsNoNumberIsNull) {
  RolloutSample sample = Sample(0);
  sample.logprobs[1] = -std::numeric_limits<float>::infinity();
  const Json line = Json::Parse(FormatSample(sample, ""));
  EXPECT_TRUE(line["logprobs"][1].is_null());
  EXPECT_TRUE(line["logprob"].is_null());
}

TEST(RolloutFile, GoesOnWhereItWasLeft) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.jsonl";
  {
    auto file = RolloutFile::Open(path, kHeader);
    ASSERT_TRUE(file.ok());
    EXPECT_THAT(file->finished(), IsEmpty());
    ASSERT_TRUE(file->Add(Sample(0)).ok());
    ASSERT_TRUE(file->Add(Sample(1)).ok());
  }
  const std::string whole = ReadFile(path).value();
  EXPECT_THAT(whole, HasSubstr("\"weights\":\"0123456789abcdef\""));
  folder.Write("out.jsonl", whole.substr(0, whole.size() - 5));  // Killed while it wrote.
  {
    auto file = RolloutFile::Open(path, kHeader);
    ASSERT_TRUE(file.ok());
    ASSERT_THAT(file->finished(), SizeIs(1));
    EXPECT_EQ(file->finished()[0].prompt, "\"p\"");
    EXPECT_EQ(file->finished()[0].sample, 0);
    EXPECT_EQ(file->finished()[0].tokens, 2);
    ASSERT_TRUE(file->Add(Sample(1)).ok());
  }
  EXPECT_EQ(ReadFile(path).value(), whole);
}

TEST(RolloutFile, RefusesWhatIsOfOtherSamples) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.jsonl";
  ASSERT_TRUE(RolloutFile::Open(path, kHeader).ok());
  Json other = kHeader;
  other["target"] = "moved";  // The same weights elsewhere.
  EXPECT_EQ(FileError(path, other), "");
  other["temperature"] = 0.5;
  EXPECT_THAT(FileError(path, other), HasSubstr("made with temperature 1.0 rather than 0.5"));
  other = kHeader;
  other["grammar"] = "root";
  EXPECT_THAT(FileError(path, other), HasSubstr("made without grammar"));
  folder.Write("notes.txt", "mine\n");
  EXPECT_THAT(FileError(folder.path() / "notes.txt", kHeader), HasSubstr("not written by rollout"));
  EXPECT_EQ(ReadFile(folder.path() / "notes.txt").value(), "mine\n");
  folder.Write("bad.jsonl", kHeader.dump() + "\nnot a sample\n");
  EXPECT_THAT(FileError(folder.path() / "bad.jsonl", kHeader), HasSubstr("no sample behind 0"));
  EXPECT_THAT(FileError(folder.path() / "none" / "out", kHeader), HasSubstr("cannot write"));
}

TEST(RolloutFile, BeginsAnEmptyOne) {
  const TemporaryFolder folder;
  folder.Write("out.jsonl", "");
  ASSERT_TRUE(RolloutFile::Open(folder.path() / "out.jsonl", kHeader).ok());
  EXPECT_EQ(ReadFile(folder.path() / "out.jsonl").value(), kHeader.dump() + "\n");
}

}  // namespace
}  // namespace foretoken
