#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken {

/// One end of an ordered, reliable, two-way stream of small records between the engine and the
/// speculator. Implemented in src/core/transport; one conformance test serves all. Each end belongs
/// to one thread.
class Channel {
 public:
  static constexpr std::size_t kMaxRecord = 4096;

  virtual ~Channel() = default;

  /// Queues one record of at most kMaxRecord bytes. False when there is no room.
  virtual bool Send(std::span<const std::byte> record) = 0;

  /// Whether a record is waiting. Cheap enough to ask between the layers of a model.
  virtual bool Readable() const = 0;

  /// The next record, valid until the next call; empty when there is none.
  virtual std::span<const std::byte> Receive() = 0;

  /// Whether the other end has written what is no record: nothing is readable any more.
  virtual bool broken() const { return false; }

  /// Spins for a bounded time, then sleeps, until a record is waiting or `timeout_ns` is over.
  virtual void WaitReadable(std::int64_t timeout_ns) = 0;
};

}  // namespace foretoken
