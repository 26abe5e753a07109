#include "apps/foretoken/common/interrupts.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

namespace foretoken {
namespace {

// A signal handler reaches nothing else.
std::atomic<bool> was_interrupted = false;
int interrupt_event = -1;

}  // namespace

void CatchInterrupts() {
  interrupt_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const int error = errno;
    was_interrupted.store(true);
    eventfd_write(interrupt_event, 1);
    errno = error;
  };
  sigemptyset(&action.sa_mask);
  // Else a write that is under way fails, and with it the stream. poll returns all the same.
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return was_interrupted; }

void ForgetInterrupts() {
  eventfd_t past = 0;
  eventfd_read(interrupt_event, &past);
  was_interrupted = false;
}

void LetInterruptsEnd() {
  signal(SIGINT, SIG_DFL);
  close(std::exchange(interrupt_event, -1));
  was_interrupted = false;
}

int InterruptEvent() { return interrupt_event; }

}  // namespace foretoken
