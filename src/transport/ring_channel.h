#pragma once

#include <memory>

#include "base/result.h"
#include "ssd/channel.h"
#include "transport/byte_ring.h"

namespace foretoken {

/// Memory for the two rings of a channel: anonymous shared memory that a child process may map by
/// its file descriptor. Owns the mapping and, where it made it, the descriptor.
class ChannelMemory {
 public:
  static Result<std::unique_ptr<ChannelMemory>> Create();
  /// Maps what another process created. `fd` stays the caller's.
  static Result<std::unique_ptr<ChannelMemory>> Attach(int fd);
  ~ChannelMemory();
  ChannelMemory(const ChannelMemory&) = delete;
  ChannelMemory& operator=(const ChannelMemory&) = delete;

  int fd() const { return fd_; }
  RingMemory* to_speculator() { return &rings_[0]; }
  RingMemory* to_engine() { return &rings_[1]; }

 private:
  ChannelMemory(RingMemory* rings, int fd) : rings_(rings), fd_(fd) {}
  RingMemory* rings_;
  int fd_;  // -1 when attached.
};

/// A channel over two rings, in one process or across two.
class RingChannel : public Channel {
 public:
  RingChannel(RingMemory* out, RingMemory* in) : writer_(out), reader_(in) {}

  bool Send(std::span<const std::byte> record) override { return writer_.Write(record); }
  bool Readable() const override { return reader_.Readable(); }
  std::span<const std::byte> Receive() override { return reader_.Read(); }
  void WaitReadable(std::int64_t timeout_ns) override { reader_.WaitReadable(timeout_ns); }

 private:
  RingWriter writer_;
  RingReader reader_;
};

}  // namespace foretoken
