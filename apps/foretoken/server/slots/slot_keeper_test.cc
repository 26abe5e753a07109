#include "apps/foretoken/server/slots/slot_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "apps/foretoken/server/slots/slot_requests.h"
#include "base/files/temporary_testing.h"
#include "foretoken/generate.h"

namespace foretoken::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CachedText Text(std::vector<Token> tokens, std::string owner = "") {
  return {.tokens = std::move(tokens), .owner = std::move(owner)};
}

TEST(SlotKeeper, ATextThatGoesOnStaysInItsSlot) {
  SlotKeeper keeper("/nowhere", 3);
  keeper.Note(-1, Text({1, 2, 3, 4}));
  keeper.Note(-1, Text({9, 9}));
  keeper.Note(-1, Text({1, 2, 3, 4, 5, 6}));  // It begins with the first.
  EXPECT_EQ(keeper.TokensIn(0, {}), 6U);
  EXPECT_EQ(keeper.TokensIn(1, {}), 2U);
  EXPECT_EQ(keeper.TokensIn(2, {}), 0U);
  keeper.Note(2, Text({7, 7, 7}));
  keeper.Note(-1, Text({8, 8, 8, 8}));  // In place of the oldest.
  EXPECT_EQ(keeper.TokensIn(1, {}), 4U);
  keeper.Note(99, Text({1, 2, 3}));  // There is no such slot: any.
  EXPECT_EQ(keeper.TokensIn(0, {}), 3U);
}

TEST(SlotKeeper, TextsOfOthersAreNotThere) {
  SlotKeeper keeper("/nowhere", 2);
  keeper.Note(0, Text({1, 2, 3}, "alice"));
  EXPECT_EQ(keeper.TokensIn(0, {.name = "alice"}), 3U);
  EXPECT_EQ(keeper.TokensIn(0, {.name = "bob"}), 0U);
  EXPECT_EQ(keeper.TokensIn(7, {.name = "alice"}), 0U);
  const auto saved = keeper.Do({.slot = 0, .filename = "a"}, {.name = "bob"}, {});
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("no text of yours"));
}

TEST(SlotKeeper, NamesLeadNowhereElse) {
  SlotKeeper keeper("/nowhere", 1);
  keeper.Note(0, Text({1, 2, 3}));
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a\\b", "a\nb",
                           "\xff", "a:b", "con*"}) {
    const auto saved = keeper.Do({.slot = 0, .filename = name}, {}, {});
    ASSERT_FALSE(saved.ok()) << name;
    EXPECT_EQ(saved.error().field, "filename") << name;
    EXPECT_THAT(saved.error().message, HasSubstr("plain name")) << name;
  }
}

TEST(SlotKeeper, SavesAndRestoresWithAnEngine) {
  const auto model = LanguageModel::Load(
      {.source = {.path = std::string(FORETOKEN_SOURCE_DIR) + "/models/demo-target"}});
  ASSERT_TRUE(model.ok());
  const auto engine = Engine::Open(*model, {.modes = {Mode::kAr}, .max_batch = 1});
  ASSERT_TRUE(engine.ok());
  std::string story;
  for (int i = 0; i < 20; ++i) story += "Once upon a time there was a little dog. ";
  Request request;
  request.prompt = (*model)->tokenizer()->Encode(story, true, false);
  request.stop.max_tokens = 8;
  const auto before = Generate(**engine, request);
  ASSERT_TRUE(before.ok());

  const TemporaryFolder folder;
  SlotKeeper keeper(folder.path(), 1);
  keeper.Note(0, Text(request.prompt));
  const SlotEngine use{.model = model->get(), .engine = engine->get()};
  const SlotAction save{.slot = 0, .filename = "story.bin"};
  const auto saved = keeper.Do(save, {}, use);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  EXPECT_EQ(saved->tokens, static_cast<std::int32_t>((request.prompt.size() - 1) / 32 * 32));
  const auto path = folder.path() / "story.bin";
  EXPECT_EQ(std::filesystem::file_size(path), saved->bytes);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));

  const SlotAction restore{SlotAction::Kind::kRestore, 0, "story.bin"};
  const auto erased = keeper.Do({.kind = SlotAction::Kind::kErase, .slot = 0}, {}, use);
  ASSERT_TRUE(erased.ok());
  EXPECT_GE(erased->tokens, saved->tokens);
  EXPECT_EQ((*engine)->kv_usage().cached, 0);
  const auto restored = keeper.Do(restore, {}, use);
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(restored->tokens, saved->tokens);
  EXPECT_EQ(keeper.TokensIn(0, {}), request.prompt.size());
  const auto after = Generate(**engine, request);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->tokens, before->tokens);
  EXPECT_EQ(after->stats.cached_prompt_tokens, saved->tokens);

  // Somebody else's file is neither taken back nor replaced, and so is what is no such file.
  EXPECT_THAT(keeper.Do(restore, {.name = "bob"}, use).error().message,
              HasSubstr("somebody else's"));
  keeper.Note(0, Text(request.prompt, "bob"));
  EXPECT_THAT(keeper.Do(save, {.name = "bob"}, use).error().message, HasSubstr("another name"));
  folder.Write("other.txt", "something");
  keeper.Note(0, Text(request.prompt));
  EXPECT_THAT(keeper.Do({.slot = 0, .filename = "other.txt"}, {}, use).error().message,
              HasSubstr("another name"));
  const auto gone = keeper.Do({SlotAction::Kind::kRestore, 0, "gone"}, {}, use);
  EXPECT_THAT(gone.error().message, HasSubstr("'gone'"));
  EXPECT_THAT(gone.error().message, Not(HasSubstr(folder.path().string())));
}

TEST(SlotRequests, SaysWhatIsWrong) {
  EXPECT_THAT(ReadSlotAction("x", "save", "{}").error().message, HasSubstr("Invalid slot ID"));
  EXPECT_THAT(ReadSlotAction("0", "copy", "{}").error().message, HasSubstr("Invalid action"));
  EXPECT_EQ(ReadSlotAction("0", "save", "{}").error().field, "filename");
  EXPECT_FALSE(ReadSlotAction("0", "save", "").ok());
  const auto erase = ReadSlotAction("3", "erase", "");
  ASSERT_TRUE(erase.ok());
  EXPECT_EQ(erase->slot, 3);
  EXPECT_EQ(ReadSlotAction("0", "restore", R"({"filename": "a.bin"})")->filename, "a.bin");
}

}  // namespace
}  // namespace foretoken::server
