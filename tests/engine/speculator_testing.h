#pragma once

// A speculator in a thread of a test.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/clock.h"
#include "core/backend/device.h"
#include "core/engine/engine.h"
#include "core/engine/rules.h"
#include "core/ssd/speculator.h"
#include "core/ssd/speculator_client.h"
#include "core/transport/thread_host.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {

/// What an engine with these options tells its speculator.
inline ConfigureMessage ConfigureFor(const EngineConfig& options, const ModelConfig& target) {
  const EngineSizes sizes = SizesFor(options, target);
  return {.max_lookahead = sizes.lookahead,
          .max_nodes = sizes.nodes,
          .max_cache_budget = sizes.cache_budget,
          .max_sequences = options.max_batch,
          .max_context = sizes.context};
}

/// The engine's end of a speculator over `draft`, a model on `device` with the target's vocabulary;
/// both outlive it.
inline std::unique_ptr<SpeculatorClient> StartTestSpeculator(Model* draft, Device* device,
                                                             ConfigureMessage config) {
  config.vocabulary = draft->config().vocabulary;
  auto host = ThreadHost::Start(
      [draft, device](Channel& channel, const std::atomic<bool>& stop) {
        device->Adopt();
        Speculator speculator(draft, &channel, {});
        (void)speculator.Run(
            [](void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); },
            const_cast<std::atomic<bool>*>(&stop));
      },
      "in the test");
  EXPECT_TRUE(host.ok());
  auto client = std::make_unique<SpeculatorClient>(
      std::move(host).value(), config,
      [](const std::string& warning) { ADD_FAILURE() << warning; });
  // As engines do: a speculator that has not said hello is not asked, so that what a run prepares
  // would depend on when its thread is started.
  const Status ready = client->WaitReady();
  EXPECT_TRUE(ready.ok());
  return client;
}

/// Waits until the speculator has prepared something for each unfinished sequence that has
/// `least_tokens` of output, but for 50 ms at most: as if the target's pass took so long. Hits
/// would else depend on the machine.
inline void AwaitPrepared(SpeculatorClient& client, const Collector& collector,
                          std::size_t least_tokens = 0) {
  const std::int64_t deadline = NowNs() + 50'000'000;
  std::vector<Token> bonuses;
  for (const auto& [id, output] : collector.outputs) {
    if (output.finished || output.tokens.size() < least_tokens) continue;
    for (;;) {
      client.Poll();
      client.PreparedAt(id, 0, &bonuses);
      if (!bonuses.empty() || NowNs() > deadline) break;
      client.Wait(1'000'000);
    }
  }
}

}  // namespace foretoken
