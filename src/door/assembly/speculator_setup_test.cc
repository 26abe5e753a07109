#include "door/assembly/speculator_setup.h"

#include <gtest/gtest.h>

#include "base/threads/cores.h"

namespace foretoken {
namespace {

SpeculatorSetup Full() {
  return {.draft = {.source = {.path = "/models/\xC3\xA9t\xE9 \"draft\"\n",
                               .synthetic = "draft-111m",
                               .weights = "q4_k_m",
                               .context = 4096,
                               .own_drafter = "exit=2",
                               .draft_vocabulary = {.ranking = "words.txt", .most = 500}},
                    .cores = {AvailableCores().front()},
                    .precision = Precision::kPortable,
                    .kv = KvFormat::kQ8_0,
                    .window = DraftWindow{.positions = 64, .anchors = 3}},
          .target = "/models/target.gguf"};
}

void ExpectSame(const SpeculatorSetup& read, const SpeculatorSetup& written) {
  const ModelSource& source = read.draft.source;
  const ModelSource& expected = written.draft.source;
  EXPECT_EQ(source.path, expected.path);
  EXPECT_EQ(source.synthetic, expected.synthetic);
  EXPECT_EQ(source.weights, expected.weights);
  EXPECT_EQ(source.context, expected.context);
  EXPECT_EQ(source.own_drafter, expected.own_drafter);
  EXPECT_EQ(source.draft_vocabulary.ranking, expected.draft_vocabulary.ranking);
  EXPECT_EQ(source.draft_vocabulary.most, expected.draft_vocabulary.most);
  EXPECT_EQ(read.draft.cores, written.draft.cores);
  EXPECT_EQ(read.draft.precision, written.draft.precision);
  EXPECT_EQ(read.draft.kv, written.draft.kv);
  ASSERT_EQ(read.draft.window.has_value(), written.draft.window.has_value());
  if (written.draft.window) {
    EXPECT_EQ(read.draft.window->positions, written.draft.window->positions);
    EXPECT_EQ(read.draft.window->anchors, written.draft.window->anchors);
  }
  EXPECT_EQ(read.target, written.target);
}

TEST(SpeculatorSetup, IsReadAsItWasWritten) {
  const SpeculatorSetup least{.draft = {.cores = Full().draft.cores}, .target = {}};
  for (const SpeculatorSetup& setup : {Full(), least}) {
    const std::string text = WriteSpeculatorSetup(setup);
    const auto read = ReadSpeculatorSetup(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    ExpectSame(*read, setup);
    EXPECT_EQ(WriteSpeculatorSetup(*read), text);
  }
}

TEST(SpeculatorSetup, IsRefusedWhereAnythingIsWrong) {
  const auto refusal = [](std::string_view text) {
    const auto read = ReadSpeculatorSetup(text);
    return read.ok() ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(refusal("none"), "the speculator's setup: is not a JSON object");
  EXPECT_EQ(refusal("{}"),
            "the speculator's setup has wrong cores: core list '': a core number is missing or too "
            "large; write it like 0, 0-3 or 0-3,8");
  const std::string cores = "{\"cores\": \"" + FormatCores({AvailableCores().front()}) + "\", ";
  EXPECT_EQ(refusal(cores + "\"path\": \"draft\"}"), "accepted");
  const std::pair<const char*, const char*> cases[] = {
      {"\"path\": 7", ": path is 7 but must be a string"},
      {"\"path\": \"\u20AC\"", " has in path a character that stands for no byte"},
      {"\"context\": \"8\"",
       ": context is \"8\" but must be a whole number from -2147483648 to 2147483647"},
      {"\"most\": 4294967296",
       ": most is 4294967296 but must be a whole number from -2147483648 to 2147483647"},
      {"\"precision\": \"f64\"", ": precision is \"f64\" but must be one of bf16, f32, portable"},
      {"\"kv\": \"f64\"", ": kv is \"f64\" but must be one of bf16, f32, q8_0"},
      {"\"window\": 8", ": window is 8 but must be an object"},
      {"\"window\": {\"anchors\": 2.5}",
       ": window: anchors is 2.5 but must be a whole number from -2147483648 to 2147483647"},
      {"\"window\": {\"last\": 2}", ": window has an unknown field \"last\""},
      {"\"port\": 1", " has an unknown field \"port\""},
  };
  for (const auto& [field, wrong] : cases) {
    EXPECT_EQ(refusal(cores + field + "}"), std::string("the speculator's setup") + wrong);
  }
}

}  // namespace
}  // namespace foretoken
