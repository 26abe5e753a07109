#include "core/transport/process_host.h"

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/threads/clock.h"
#include "base/threads/cores.h"

extern char** environ;

namespace foretoken {
namespace {

// How long a child that was told to shut down may take before it is killed.
constexpr std::int64_t kShutdownPatienceNs = 1'000'000'000;
// How long a killed one is waited for: it may have to be read from a disk before it can die.
constexpr std::int64_t kKillPatienceNs = 100'000'000;
// What the channel's memory is called in the child.
constexpr int kMemoryDescriptor = 3;

// What a child gets of this process: the standard streams and the channel's memory. Connections of
// clients, and whatever else is open here, are none of its business, and would stay open with it.
class ChildFiles {
 public:
  explicit ChildFiles(int memory) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, memory, kMemoryDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kMemoryDescriptor + 1);
  }
  ~ChildFiles() { posix_spawn_file_actions_destroy(&actions_); }
  ChildFiles(const ChildFiles&) = delete;
  ChildFiles& operator=(const ChildFiles&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

ProcessHost::ProcessHost(std::vector<std::string> command, std::string place)
    : command_(std::move(command)), place_(std::move(place)) {}

Result<std::unique_ptr<SpeculatorHost>> ProcessHost::Start(std::vector<std::string> command,
                                                           std::string place) {
  std::unique_ptr<ProcessHost> host(new ProcessHost(std::move(command), std::move(place)));
  FT_RETURN_IF_ERROR(host->Restart());
  return std::unique_ptr<SpeculatorHost>(std::move(host));
}

ProcessHost::~ProcessHost() {
  AwaitEnd(kShutdownPatienceNs);
  Kill();
}

Status ProcessHost::Restart() {
  Kill();
  channel_.reset();
  FT_ASSIGN_OR_RETURN(memory_, ChannelMemory::Create());
  channel_ = std::make_unique<RingChannel>(memory_->to_speculator(), memory_->to_engine());

  std::vector<std::string> arguments = command_;
  arguments.emplace_back("--memory-fd");
  arguments.push_back(std::to_string(kMemoryDescriptor));
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // A child inherits this thread's cores, and an engine's thread is pinned to one.
  cpu_set_t pinned;
  const bool restore = sched_getaffinity(0, sizeof(pinned), &pinned) == 0;
  UnpinCurrentThread();
  const ChildFiles files(memory_->fd());
  const int failure =
      posix_spawn(&child_, pointers[0], files.get(), nullptr, pointers.data(), environ);
  if (restore) sched_setaffinity(0, sizeof(pinned), &pinned);
  if (failure != 0) {
    child_ = -1;
    return Unavailable("cannot start {}: {}", command_[0], std::strerror(failure));
  }
  return {};
}

bool ProcessHost::Alive() {
  if (child_ < 0) return false;
  if (waitpid(child_, nullptr, WNOHANG) == 0) return true;
  child_ = -1;
  return false;
}

void ProcessHost::AwaitEnd(std::int64_t patience_ns) {
  const std::int64_t deadline = NowNs() + patience_ns;
  while (Alive() && NowNs() < deadline) usleep(1000);
}

void ProcessHost::Kill() {
  if (!Alive()) return;
  kill(child_, SIGKILL);
  AwaitEnd(kKillPatienceNs);
  child_ = -1;
}

std::string ProcessHost::Describe() const {
  return child_ < 0 ? "process " + place_ : fmt::format("process {} {}", child_, place_);
}

}  // namespace foretoken
