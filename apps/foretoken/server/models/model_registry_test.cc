#include "apps/foretoken/server/models/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace foretoken::server {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Models that are all the same; those in `broken` cannot be loaded.
class Models {
 public:
  explicit Models(std::vector<std::string> names, RegistryLimits limits = {}) {
    std::vector<ModelSpec> specs;
    for (const std::string& name : names) {
      specs.push_back({.id = name,
                       .aliases = {"the-" + name},
                       .cores = {0},
                       .bytes = 1000,
                       .load = [this, name](const auto& pause) { return Load(name, pause); }});
    }
    registry = std::make_unique<ModelRegistry>(std::move(specs), limits);
  }

  // Waits for the model.
  ModelRegistry::Answer Get(ModelRegistry::Index model) const {
    std::promise<ModelRegistry::Answer> later;
    auto now = registry->Acquire(
        model, [&later](ModelRegistry::Answer answer) { later.set_value(std::move(answer)); });
    return now.has_value() ? std::move(*now) : later.get_future().get();
  }
  bool Loaded(ModelRegistry::Index model) const {
    return registry->status(model).state == ModelState::kLoaded;
  }
  void AwaitUnloaded(ModelRegistry::Index model) const {
    for (int i = 0; Loaded(model) && i < 10'000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(Loaded(model));
  }

  std::atomic<bool> broken = false;
  std::unique_ptr<ModelRegistry> registry;

 private:
  Result<ServedModel> Load(const std::string& name, const std::function<void()>& pause) const {
    if (broken) return InvalidInput("'" + name + "' is broken");
    ServedModel served;
    FT_ASSIGN_OR_RETURN(served.model,
                        LanguageModel::Load({.source = {FORETOKEN_SOURCE_DIR "/models/demo-draft"},
                                             .cores = {0},
                                             .progress = [&pause](auto, auto) { pause(); }}));
    EngineOptions options;
    options.modes = {Mode::kAr};
    options.max_context = 64;
    options.max_batch = 2;
    FT_ASSIGN_OR_RETURN(served.engine, Engine::Open(served.model, options));
    return served;
  }
};

ModelRegistry::Lease LeaseIn(const ModelRegistry::Answer& answer) {
  const auto* lease = std::get_if<ModelRegistry::Lease>(&answer);
  EXPECT_NE(lease, nullptr) << std::get<ApiError>(answer).message;
  return lease == nullptr ? nullptr : *lease;
}

TEST(ModelRegistry, NamesAndAliases) {
  const Models models({"a", "b"});
  EXPECT_EQ(models.registry->Find("b"), 1U);
  EXPECT_EQ(models.registry->Find("the-b:latest"), 1U);
  EXPECT_EQ(models.registry->Find("c"), ModelRegistry::kNone);
  EXPECT_EQ(std::get<ApiError>(models.registry->Resolve("c")).status, 404);
  const auto unnamed = std::get<ApiError>(models.registry->Resolve(""));
  EXPECT_EQ(unnamed.status, 400);
  EXPECT_EQ(unnamed.message, "this server has several models: say in 'model' which of 'a', 'b'");
  const Models one({"a"});
  EXPECT_EQ(std::get<ModelRegistry::Index>(one.registry->Resolve("c")), 0U);
}

TEST(ModelRegistry, LoadsOnceForAllWhoWait) {
  const Models models({"a", "b"});
  std::vector<std::thread> threads;
  std::atomic<int> served = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&models, &served] {
      const ModelRegistry::Lease lease = LeaseIn(models.Get(0));
      served += lease->id() == "a" ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 8);
  EXPECT_EQ(models.registry->status(0).loads, 1);
  EXPECT_EQ(models.registry->status(0).context, 64);
  EXPECT_FALSE(models.Loaded(1));
  EXPECT_EQ(models.registry->Peek(1), nullptr);
}

TEST(ModelRegistry, TheOneUsedTheLongestAgoGoes) {
  const Models models({"a", "b", "c"}, {.loaded = 2});
  LeaseIn(models.Get(0));
  LeaseIn(models.Get(1));
  LeaseIn(models.Get(0));
  models.registry->Peek(1);  // No use.
  LeaseIn(models.Get(2));
  EXPECT_TRUE(models.Loaded(0));
  EXPECT_FALSE(models.Loaded(1));
  EXPECT_TRUE(models.Loaded(2));
}

TEST(ModelRegistry, ABusyOneGoesWhenItIsLetGoOf) {
  const Models models({"a", "b"}, {.loaded = 1});
  ModelRegistry::Lease first = LeaseIn(models.Get(0));
  auto other = std::async(std::launch::async, [&models] { return LeaseIn(models.Get(1))->id(); });
  // Who comes now waits behind it.
  std::future<std::string> again;
  std::promise<std::string> later;
  for (int i = 0; !again.valid(); ++i) {
    ASSERT_LT(i, 10'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto now = models.registry->Acquire(
        0, [&later](ModelRegistry::Answer answer) { later.set_value(LeaseIn(answer)->id()); });
    if (!now.has_value()) again = later.get_future();
  }
  EXPECT_EQ(first->id(), "a");
  EXPECT_TRUE(models.Loaded(0));
  first.reset();
  EXPECT_EQ(other.get(), "b");
  EXPECT_EQ(again.get(), "a");
  EXPECT_EQ(models.registry->status(0).loads, 2);
}

TEST(ModelRegistry, IdleOnesGo) {
  const Models models({"a"}, {.idle = std::chrono::milliseconds(20)});
  ModelRegistry::Lease lease = LeaseIn(models.Get(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_TRUE(models.Loaded(0));  // It is in use.
  lease.reset();
  models.AwaitUnloaded(0);
}

TEST(ModelRegistry, OneThatIsToGoAtOnceEndsWhatItHas) {
  const Models models({"a"});
  ModelRegistry::Lease lease = LeaseIn(models.Get(0));
  EXPECT_FALSE(models.registry->status(0).leaves.has_value());
  models.registry->KeepFor(0, ModelRegistry::Duration::zero());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(models.Loaded(0));  // It is in use.
  lease.reset();
  models.AwaitUnloaded(0);
  // Loaded anew it is kept as all are.
  LeaseIn(models.Get(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(models.Loaded(0));
  models.registry->KeepFor(0, ModelRegistry::Duration::zero());  // Nobody uses it.
  models.AwaitUnloaded(0);
}

TEST(ModelRegistry, OneModelMayStayLongerThanOthers) {
  const Models models({"a", "b"}, {.idle = std::chrono::milliseconds(20)});
  ModelRegistry::Lease first = LeaseIn(models.Get(0));
  ModelRegistry::Lease second = LeaseIn(models.Get(1));
  models.registry->KeepFor(0, ModelRegistry::kForEver);
  models.registry->KeepFor(1, std::chrono::hours(1));
  first.reset();
  second.reset();
  EXPECT_FALSE(models.registry->status(0).leaves.has_value());
  EXPECT_GT(*models.registry->status(1).leaves,
            std::chrono::steady_clock::now() + std::chrono::minutes(50));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_TRUE(models.Loaded(0));
  EXPECT_TRUE(models.Loaded(1));
  models.registry->KeepFor(0, std::nullopt);
  models.AwaitUnloaded(0);
  EXPECT_TRUE(models.Loaded(1));
}

TEST(ModelRegistry, WhatIsLoadedAlreadyIsNotLoadedAgain) {
  const Models models({"a"});
  LeaseIn(models.Get(0));
  models.registry->Preload(0);
  EXPECT_TRUE(models.registry->AwaitLoaded(0).ok());
  EXPECT_EQ(models.registry->status(0).loads, 1);
}

TEST(ModelRegistry, OfSeveralModelsOneMustBeNamed) {
  const Models models({"a", "b"});
  const auto unnamed = models.registry->Resolve("");
  ASSERT_TRUE(std::holds_alternative<ApiError>(unnamed));
  EXPECT_EQ(std::get<ApiError>(unnamed).status, 400);
  EXPECT_EQ(std::get<ApiError>(unnamed).message,
            "this server has several models: say in 'model' which of 'a', 'b'");
  const auto other = models.registry->Resolve("c");
  EXPECT_EQ(std::get<ApiError>(other).message, "the model 'c' is not served here; 'a', 'b' are");
}

TEST(ModelRegistry, WhatCannotBeLoadedIsTriedAgain) {
  Models models({"a", "b"});
  models.broken = true;
  const ModelRegistry::Answer answer = models.Get(0);
  EXPECT_EQ(std::get<ApiError>(answer).status, 500);
  EXPECT_THAT(std::get<ApiError>(answer).message, HasSubstr("the model 'a' could not be"));
  EXPECT_THAT(std::get<ApiError>(answer).message, Not(HasSubstr("broken")))
      << "why may name files, and is told to the operator";
  EXPECT_EQ(models.registry->status(0).failure, "'a' is broken");
  EXPECT_EQ(models.registry->outcomes(0).of(RequestOutcome::kUnavailable), 1);
  models.registry->Preload(1);
  EXPECT_EQ(models.registry->AwaitLoaded(1).error().message, "'b' is broken");
  models.broken = false;
  LeaseIn(models.Get(0));
  EXPECT_EQ(models.registry->status(0).failure, "");
}

TEST(ModelRegistry, StoppedItAnswersAllWhoWait) {
  const Models models({"a", "b"}, {.loaded = 1});
  const ModelRegistry::Lease held = LeaseIn(models.Get(0));
  std::promise<int> status;
  EXPECT_FALSE(models.registry
                   ->Acquire(1,
                             [&status](ModelRegistry::Answer answer) {
                               status.set_value(std::get<ApiError>(answer).status);
                             })
                   .has_value());
  models.registry->Stop();
  EXPECT_EQ(status.get_future().get(), 503);
  EXPECT_EQ(std::get<ApiError>(models.Get(0)).code, "shutting_down");
}

}  // namespace
}  // namespace foretoken::server
