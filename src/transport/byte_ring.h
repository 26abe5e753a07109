#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

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

/// The producing end of a ring of records.
class RingWriter {
 public:
  explicit RingWriter(RingMemory* memory) : memory_(memory) {}
  /// Appends a record and wakes a sleeping consumer. False when there is no room.
  bool Write(std::span<const std::byte> record);

 private:
  RingMemory* memory_;
};

/// The consuming end. A record that does not make sense (a broken peer) ends the stream: the ring
/// then stays empty.
class RingReader {
 public:
  explicit RingReader(RingMemory* memory) : memory_(memory) {}
  bool Readable() const;
  /// The next record in place, valid until the next call; empty when there is none.
  std::span<const std::byte> Read();
  void WaitReadable(std::int64_t timeout_ns);

 private:
  RingMemory* memory_;
  std::uint64_t position_ = 0;  // Start of the record after the one handed out.
  bool broken_ = false;
};

}  // namespace foretoken
