#include "door/assembly/speculator_process.h"

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr ConfigureMessage kLimits{.max_lookahead = 4,
                                   .max_nodes = 4,
                                   .max_cache_budget = 10,
                                   .max_sequences = 1,
                                   .max_context = 64,
                                   .vocabulary = 1024};

TEST(Speculator, IsReadyInAThreadOfThisProcess) {
  const DraftOptions setup = BundledDraft();
  auto draft = LoadModel(setup.source, std::make_shared<Device>(setup.cores), setup.precision);
  ASSERT_TRUE(draft.ok());
  const ModelIdentity identity = (*draft)->identity;
  const auto speculator =
      StartSpeculator(setup, {.identity = identity, .loaded = std::move(*draft)}, kLimits);
  ASSERT_TRUE(speculator.ok()) << speculator.error().message;
  EXPECT_TRUE((*speculator)->healthy());
}

TEST(Speculator, AProcessThatCannotRunIsAnErrorAndNoWarning) {
  DraftOptions setup = BundledDraft();
  setup.process = true;
  setup.executable = "/nowhere/foretoken";
  const LogSink log = [](std::string_view warning) { ADD_FAILURE() << warning; };
  EXPECT_FALSE(StartSpeculator(setup, {}, kLimits, log).ok());
}

}  // namespace
}  // namespace foretoken
