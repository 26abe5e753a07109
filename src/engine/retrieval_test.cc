// Retrieval from a live datastore: what was learned makes rounds longer and changes no token.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "datastore/datastore_tenant.h"
#include "engine/engine_testing.h"

namespace foretoken {
namespace {

class LiveDatastore : public testing::Test {
 protected:
  LiveDatastore() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "retrieval_test.XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    const Tokenizer& tokenizer = *BundledTarget()->tokenizer;
    DatastoreOptions options;
    options.tokenizer = {"demo-target", tokenizer.fingerprint(), tokenizer.vocabulary()};
    auto opened = DatastoreDirectory::Open(path_, options, /*learn=*/true);
    EXPECT_TRUE(opened.ok());
    directory_ = std::move(*opened);
  }
  ~LiveDatastore() override {
    directory_.reset();
    std::filesystem::remove_all(path_);
  }

  struct Run {
    std::vector<std::vector<Token>> tokens;
    int rounds = 0;
  };
  Run Decode(Mode mode, DatastoreTenant* tenant, bool learn) {
    auto engine =
        MakeEngine(mode, {.plan = {.lookahead = 15}, .max_batch = 2}, BundledTarget(), {});
    EXPECT_TRUE(engine.ok());
    Collector collector;
    Run run;
    std::vector<SequenceId> ids;
    for (const auto& prompt : StoryPrompts()) {
      ids.push_back(*(*engine)->Submit({.prompt = prompt,
                                        .sampling = {.temperature = 0.5F, .seed = 3},
                                        .stop = {.max_tokens = 80},
                                        .datastore = tenant,
                                        .learn = learn,
                                        .listener = &collector}));
    }
    (*engine)->RunUntilIdle();
    EXPECT_TRUE(directory_->Flush().ok());
    for (const SequenceId id : ids) {
      run.tokens.push_back(collector.outputs[id].tokens);
      run.rounds += collector.outputs[id].stats.rounds;
    }
    return run;
  }

  std::filesystem::path path_;
  std::unique_ptr<DatastoreDirectory> directory_;
};

TEST_F(LiveDatastore, LearnsFromOutputsOfItsOwnNamespace) {
  DatastoreTenant* const alice = *directory_->Tenant("alice");
  DatastoreTenant* const bob = *directory_->Tenant("bob");
  const Run truth = Decode(Mode::kAr, nullptr, false);
  const Run cold = Decode(Mode::kSssd, alice, /*learn=*/false);
  EXPECT_EQ(cold.tokens, truth.tokens);
  EXPECT_TRUE(alice->Segments().empty());  // Opted out.

  EXPECT_EQ(Decode(Mode::kSssd, alice, /*learn=*/true).tokens, truth.tokens);
  const Run warm = Decode(Mode::kSssd, alice, /*learn=*/false);
  EXPECT_EQ(warm.tokens, truth.tokens);
  EXPECT_LT(2 * warm.rounds, cold.rounds);

  const Run other = Decode(Mode::kSssd, bob, /*learn=*/false);
  EXPECT_EQ(other.tokens, truth.tokens);
  EXPECT_EQ(other.rounds, cold.rounds);

  const Run rest = Decode(Mode::kRest, alice, /*learn=*/false);
  EXPECT_EQ(rest.tokens, truth.tokens);
  EXPECT_LT(2 * rest.rounds, truth.rounds);
}

}  // namespace
}  // namespace foretoken
