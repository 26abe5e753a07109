#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "core/ssd/channel.h"

namespace foretoken {

/// The shared part of a ring: plain memory that two threads or two processes map. Zero bytes are
/// an empty ring. One producer, one consumer.
struct RingMemory {
  static constexpr std::size_t kCapacity = std::size_t{1} << 20;

  alignas(64) std::atomic<std::uint64_t> head;      ///< Bytes ever written; the producer's.
  alignas(64) std::atomic<std::uint64_t> tail;      ///< Bytes ever consumed; the consumer's.
  alignas(64) std::atomic<std::uint32_t> sleeping;  ///< 1 while the consumer sleeps on it.
  alignas(64) std::byte data[kCapacity];
};

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

/// A channel over two rings, in one process or across two: writes records to one and reads them
/// from the other. A record that does not make sense (a broken peer) ends the stream: nothing is
/// readable any more.
class RingChannel : public Channel {
 public:
  RingChannel(RingMemory* out, RingMemory* in) : out_(out), in_(in) {}

  bool Send(std::span<const std::byte> record) override;
  bool Readable() const override {
    return !broken_ && in_->head.load(std::memory_order_acquire) != position_;
  }
  std::span<const std::byte> Receive() override;
  bool broken() const override { return broken_; }
  void WaitReadable(std::int64_t timeout_ns) override;

 private:
  RingMemory* out_;
  RingMemory* in_;
  std::uint64_t position_ = 0;  // Start of the record after the one handed out.
  bool broken_ = false;
};

}  // namespace foretoken
