#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "core/ssd/speculator_client.h"
#include "core/transport/ring_channel.h"

namespace foretoken {

/// A speculator in a process of its own, over shared memory. The child gets `--memory-fd N`
/// appended to its arguments, has no other open file of this process but the standard streams, and
/// ends when this process does.
class ProcessHost : public SpeculatorHost {
 public:
  /// `command`: the program and its arguments. `place` is for messages: "on cores 1".
  static Result<std::unique_ptr<SpeculatorHost>> Start(std::vector<std::string> command,
                                                       std::string place);
  ~ProcessHost() override;

  Channel& channel() override { return *channel_; }
  bool Alive() override;
  Status Restart() override;
  std::string Describe() const override;

 private:
  ProcessHost(std::vector<std::string> command, std::string place);
  // Waits until the child has ended, or for so long.
  void AwaitEnd(std::int64_t patience_ns);
  void Kill();

  std::vector<std::string> command_;
  std::string place_;
  std::unique_ptr<ChannelMemory> memory_;
  std::unique_ptr<RingChannel> channel_;
  pid_t child_ = -1;
};

}  // namespace foretoken
