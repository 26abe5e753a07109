#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/ssd/speculator_client.h"
#include "core/transport/ring_channel.h"

namespace foretoken {

/// A speculator in a thread of this process.
class ThreadHost : public SpeculatorHost {
 public:
  /// `serve` runs on the new thread until a shutdown message comes or the flag is set.
  using Serve = std::function<void(Channel& channel, const std::atomic<bool>& stop)>;
  static Result<std::unique_ptr<SpeculatorHost>> Start(Serve serve, std::string description);
  ~ThreadHost() override;

  Channel& channel() override { return *engine_end_; }
  bool Alive() override { return !ended_; }
  /// An error while the thread of the last one is busy: no thread can be ended from outside.
  Status Restart() override;
  std::string Describe() const override { return description_; }

 private:
  ThreadHost(Serve serve, std::string description)
      : serve_(std::move(serve)), description_(std::move(description)) {}
  void Run();

  Serve serve_;
  std::string description_;
  std::unique_ptr<ChannelMemory> memory_;
  std::optional<RingChannel> engine_end_;
  std::optional<RingChannel> speculator_end_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> ended_ = true;
  std::thread thread_;
};

}  // namespace foretoken
