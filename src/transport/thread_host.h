#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ssd/speculator_client.h"
#include "transport/ring_channel.h"

namespace foretoken {

/// A speculator in a thread of this process.
class ThreadHost : public SpeculatorHost {
 public:
  /// `serve` runs on the new thread until a shutdown message comes or the flag is set.
  using Serve = std::function<void(Channel& channel, const std::atomic<bool>& stop)>;
  static Result<std::unique_ptr<SpeculatorHost>> Start(Serve serve, std::string description);
  ~ThreadHost() override;

  Channel& channel() override { return engine_end_; }
  bool Alive() override { return !ended_; }
  Status Restart() override;
  std::string Describe() const override { return description_; }

 private:
  ThreadHost(std::unique_ptr<ChannelMemory> memory, Serve serve, std::string description);

  std::unique_ptr<ChannelMemory> memory_;
  RingChannel engine_end_;
  RingChannel speculator_end_;
  std::string description_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> ended_ = false;  // For lack of memory.
  std::thread thread_;
};

}  // namespace foretoken
