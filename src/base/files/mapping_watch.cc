#include "base/files/mapping_watch.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include <fmt/core.h>

#include "base/text/utf8.h"

namespace foretoken {

// Only what a signal handler may touch: atomics, and bytes that were there before them.
struct MappingWatch::Entry {
  std::atomic<bool> taken{true};
  std::atomic<std::uintptr_t> begin{0};  // 0: watches nothing. Published last.
  std::size_t bytes = 0;
  WhenLost when = WhenLost::kEnd;
  std::array<char, 512> sentence{};
  std::size_t sentence_bytes = 0;
  std::atomic<bool> lost{false};
  Entry* next = nullptr;  // Never changes once it is in the list.
};

namespace {

using Entry = MappingWatch::Entry;

// The process has one list, as it has one signal handler: it only grows, and its entries are used
// again.
constinit std::atomic<Entry*> first_entry{nullptr};
struct sigaction previous_action;
std::uintptr_t page_bytes = 0;

void PassOn(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // Ends the process when the handler returns.
  }
}

// Whether zeros lie now where `address` was lost.
bool MapZeros(const Entry& entry, std::uintptr_t begin, std::uintptr_t address) {
  const std::uintptr_t page = address / page_bytes * page_bytes;
  // To the end: a file that was truncated has lost all of it.
  const long mapped = syscall(SYS_mmap, page, begin + entry.bytes - page, PROT_READ,
                              MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == static_cast<long>(page);
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  // What a process sends (kill) has no address.
  Entry* entry = info->si_code > 0 ? first_entry.load(std::memory_order_acquire) : nullptr;
  for (; entry != nullptr; entry = entry->next) {
    const std::uintptr_t begin = entry->begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address - begin >= entry->bytes) continue;
    if (entry->when == WhenLost::kEnd) {
      const ssize_t ignored = write(STDERR_FILENO, entry->sentence.data(), entry->sentence_bytes);
      (void)ignored;
      _exit(1);
    }
    entry->lost.store(true);
    if (!MapZeros(*entry, begin, address)) break;
    errno = saved_errno;
    return;
  }
  PassOn(signal, info, context);
  errno = saved_errno;
}

bool Install() {
  page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &previous_action) == 0;
}

Entry* TakeEntry() {
  Entry* first = first_entry.load(std::memory_order_acquire);
  for (Entry* entry = first; entry != nullptr; entry = entry->next) {
    if (!entry->taken.exchange(true)) return entry;
  }
  auto* const made = new Entry;
  do {
    made->next = first;
  } while (!first_entry.compare_exchange_weak(first, made));
  return made;
}

}  // namespace

MappingWatch::MappingWatch(std::span<const std::byte> mapping, WhenLost when,
                           std::string_view name) {
  static const bool installed = Install();
  (void)installed;
  entry_ = TakeEntry();
  lost_ = &entry_->lost;
  entry_->lost = false;
  entry_->bytes = mapping.size();
  entry_->when = when;
  constexpr std::size_t kMostOfName = 350;
  const std::string sentence = fmt::format(
      "foretoken: {}: lost part of its content while it was read: another program has truncated "
      "it, or its disk fails\n",
      Shortened(name, kMostOfName));
  entry_->sentence_bytes = std::min(sentence.size(), entry_->sentence.size());
  std::copy_n(sentence.begin(), entry_->sentence_bytes, entry_->sentence.begin());
  entry_->begin.store(reinterpret_cast<std::uintptr_t>(mapping.data()), std::memory_order_release);
}

MappingWatch::~MappingWatch() {
  entry_->begin.store(0, std::memory_order_release);
  entry_->taken.store(false, std::memory_order_release);
}

}  // namespace foretoken
