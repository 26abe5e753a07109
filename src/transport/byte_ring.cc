#include "transport/byte_ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "ssd/channel.h"

namespace foretoken {
namespace {

// A record is an 8-byte length and its bytes, padded to 8; it never wraps. kSkip in place of a
// length sends the reader to the start of the buffer.
constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kSkip = ~std::uint64_t{0};
constexpr std::int64_t kSpinNs = 50'000;

constexpr std::size_t Padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* timeout) {
  // Not FUTEX_PRIVATE: the other end may be another process.
  (void)syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, timeout,
                nullptr, 0);
}

}  // namespace

bool RingWriter::Write(std::span<const std::byte> record) {
  const std::uint64_t head = memory_->head.load(std::memory_order_relaxed);
  const std::uint64_t tail = memory_->tail.load(std::memory_order_acquire);
  const std::size_t need = kLengthBytes + Padded(record.size());
  std::size_t offset = head % RingMemory::kCapacity;
  std::uint64_t next = head;
  if (offset + need > RingMemory::kCapacity) {
    next += RingMemory::kCapacity - offset;
  }
  if (next + need - tail > RingMemory::kCapacity) return false;
  if (next != head) {
    std::memcpy(memory_->data + offset, &kSkip, kLengthBytes);
    offset = 0;
  }
  const std::uint64_t length = record.size();
  std::memcpy(memory_->data + offset, &length, kLengthBytes);
  std::memcpy(memory_->data + offset + kLengthBytes, record.data(), record.size());
  // Sequentially consistent with the consumer's store to `sleeping`: one of the two sees the other.
  memory_->head.store(next + need, std::memory_order_seq_cst);
  if (memory_->sleeping.load(std::memory_order_seq_cst) != 0) {
    memory_->sleeping.store(0, std::memory_order_seq_cst);
    Futex(&memory_->sleeping, FUTEX_WAKE, 1, nullptr);
  }
  return true;
}

bool RingReader::Readable() const {
  return !broken_ && memory_->head.load(std::memory_order_acquire) != position_;
}

std::span<const std::byte> RingReader::Read() {
  // What was handed out last time is consumed now.
  memory_->tail.store(position_, std::memory_order_release);
  while (Readable()) {
    const std::uint64_t available = memory_->head.load(std::memory_order_acquire) - position_;
    const std::size_t offset = position_ % RingMemory::kCapacity;
    std::uint64_t length = 0;
    std::memcpy(&length, memory_->data + offset, kLengthBytes);
    if (length == kSkip) {
      position_ += RingMemory::kCapacity - offset;
      continue;
    }
    const std::uint64_t size = kLengthBytes + Padded(length);
    if (length == 0 || length > Channel::kMaxRecord || size > available ||
        offset + size > RingMemory::kCapacity) {
      broken_ = true;
      break;
    }
    position_ += size;
    return {memory_->data + offset + kLengthBytes, static_cast<std::size_t>(length)};
  }
  return {};
}

void RingReader::WaitReadable(std::int64_t timeout_ns) {
  const std::int64_t start = NowNs();
  const std::int64_t spin_until = start + std::min(timeout_ns, kSpinNs);
  while (!Readable()) {
    if (NowNs() >= spin_until) break;
    Pause();
  }
  const std::int64_t left = start + timeout_ns - NowNs();
  if (Readable() || left <= 0) return;
  memory_->sleeping.store(1, std::memory_order_seq_cst);
  if (memory_->head.load(std::memory_order_seq_cst) == position_ || broken_) {
    const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    Futex(&memory_->sleeping, FUTEX_WAIT, 1, &timeout);
  }
  memory_->sleeping.store(0, std::memory_order_seq_cst);
}

}  // namespace foretoken
