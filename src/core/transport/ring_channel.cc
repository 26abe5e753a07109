#include "core/transport/ring_channel.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

constexpr std::size_t kBytes = 2 * sizeof(RingMemory);

Error SystemError(const char* what) {
  return Unavailable("cannot {} for the speculator's channel: {}", what, std::strerror(errno));
}

Result<RingMemory*> Map(int fd) {
  void* address = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return SystemError("map shared memory");
  return static_cast<RingMemory*>(address);
}

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

Result<std::unique_ptr<ChannelMemory>> ChannelMemory::Create() {
  const int fd = memfd_create("foretoken-channel", MFD_CLOEXEC);
  if (fd < 0) return SystemError("create shared memory");
  if (ftruncate(fd, kBytes) != 0) {
    close(fd);
    return SystemError("size shared memory");
  }
  auto rings = Map(fd);
  if (!rings.ok()) {
    close(fd);
    return rings.error();
  }
  return std::unique_ptr<ChannelMemory>(new ChannelMemory(*rings, fd));
}

Result<std::unique_ptr<ChannelMemory>> ChannelMemory::Attach(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return SystemError("inspect shared memory");
  if (Size(info.st_size) != kBytes) {
    return Invalid(
        "file descriptor {} holds {} bytes, not the {} of a speculator's channel: is the engine of "
        "the same version?",
        fd, info.st_size, kBytes);
  }
  FT_ASSIGN_OR_RETURN(RingMemory * rings, Map(fd));
  return std::unique_ptr<ChannelMemory>(new ChannelMemory(rings, -1));
}

ChannelMemory::~ChannelMemory() {
  munmap(rings_, kBytes);
  if (fd_ >= 0) close(fd_);
}

bool RingChannel::Send(std::span<const std::byte> record) {
  const std::uint64_t head = out_->head.load(std::memory_order_relaxed);
  const std::uint64_t tail = out_->tail.load(std::memory_order_acquire);
  const std::size_t need = kLengthBytes + Padded(record.size());
  std::size_t offset = head % RingMemory::kCapacity;
  std::uint64_t next = head;
  if (offset + need > RingMemory::kCapacity) next += RingMemory::kCapacity - offset;
  if (next + need - tail > RingMemory::kCapacity) return false;
  if (next != head) {
    std::memcpy(out_->data + offset, &kSkip, kLengthBytes);
    offset = 0;
  }
  const std::uint64_t length = record.size();
  std::memcpy(out_->data + offset, &length, kLengthBytes);
  std::memcpy(out_->data + offset + kLengthBytes, record.data(), record.size());
  // Sequentially consistent with the consumer's store to `sleeping`: one of the two sees the other.
  out_->head.store(next + need, std::memory_order_seq_cst);
  if (out_->sleeping.load(std::memory_order_seq_cst) != 0) {
    out_->sleeping.store(0, std::memory_order_seq_cst);
    Futex(&out_->sleeping, FUTEX_WAKE, 1, nullptr);
  }
  return true;
}

std::span<const std::byte> RingChannel::Receive() {
  // What was handed out last time is consumed now.
  in_->tail.store(position_, std::memory_order_release);
  while (Readable()) {
    const std::uint64_t available = in_->head.load(std::memory_order_acquire) - position_;
    const std::size_t offset = position_ % RingMemory::kCapacity;
    std::uint64_t length = 0;
    std::memcpy(&length, in_->data + offset, kLengthBytes);
    if (length == kSkip) {
      position_ += RingMemory::kCapacity - offset;
      continue;
    }
    const std::uint64_t size = kLengthBytes + Padded(length);
    if (length == 0 || length > kMaxRecord || size > available ||
        offset + size > RingMemory::kCapacity) {
      broken_ = true;
      break;
    }
    position_ += size;
    return {in_->data + offset + kLengthBytes, Size(length)};
  }
  return {};
}

void RingChannel::WaitReadable(std::int64_t timeout_ns) {
  const std::int64_t start = NowNs();
  const std::int64_t spin_until = start + std::min(timeout_ns, kSpinNs);
  while (!Readable()) {
    if (NowNs() >= spin_until) break;
    Pause();
  }
  const std::int64_t left = start + timeout_ns - NowNs();
  if (Readable() || left <= 0) return;
  in_->sleeping.store(1, std::memory_order_seq_cst);
  if (in_->head.load(std::memory_order_seq_cst) == position_ || broken_) {
    const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    Futex(&in_->sleeping, FUTEX_WAIT, 1, &timeout);
  }
  in_->sleeping.store(0, std::memory_order_seq_cst);
}

}  // namespace foretoken
