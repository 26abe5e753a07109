#include "apps/foretoken/server/work_pool.h"

#include <malloc.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <utility>

#include "base/exhaustion.h"

namespace foretoken::server {
namespace {

// What the process has in memory.
std::size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

WorkPool::WorkPool() : least_resident_(ResidentBytes()) {}

void WorkPool::Turns::Push(Job job) {
  std::deque<Job>& jobs = waiting_[job.client];
  if (jobs.empty()) next_.push_back(job.client);
  jobs.push_back(std::move(job));
}

std::optional<Job> WorkPool::Turns::Pop() {
  if (next_.empty()) return std::nullopt;
  const auto client = waiting_.find(next_.front());
  next_.pop_front();
  Job job = std::move(client->second.front());
  client->second.pop_front();
  if (client->second.empty()) {
    waiting_.erase(client);
  } else {
    next_.push_back(client->first);
  }
  return job;
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<std::unique_ptr<WorkPool>> WorkPool::Start(int threads) {
  std::unique_ptr<WorkPool> pool(new WorkPool());
  return OrExhausted([&]() -> Result<std::unique_ptr<WorkPool>> {
    for (int i = 0; i < threads; ++i) {
      const bool short_only = i >= (threads + 1) / 2;
      pool->threads_.emplace_back([own = pool.get(), short_only] { own->Work(short_only); });
    }
    return std::move(pool);
  });
}

void WorkPool::Run(Job job) {
  {
    const std::lock_guard lock(mutex_);
    (job.takes_long ? long_ : short_).Push(std::move(job));
  }
  changed_.notify_all();  // Not one: it might be a thread that leaves this job to another.
}

// Waits for a job; none where the pool ends and there is none left.
std::optional<Job> WorkPool::Next(bool short_only) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!short_only) {
      if (auto job = long_.Pop()) return job;
    }
    if (auto job = short_.Pop()) return job;
    if (ending_) return std::nullopt;
    changed_.wait(lock);
  }
}

void WorkPool::Work(bool short_only) {
  while (std::optional<Job> job = Next(short_only)) {
    if (job->unwanted()) continue;
    const bool long_one = job->takes_long;
    try {
      job->work();
    } catch (const std::exception&) {
      job->failed();
    }
    job.reset();
    if (long_one) GiveMemoryBack();
  }
}

// What was read and written lies in many small pieces, which the allocator keeps for itself.
void WorkPool::GiveMemoryBack() {
  constexpr std::size_t kWorthIt = 32 << 20;
  {
    const std::lock_guard lock(mutex_);
    if (!long_.empty()) return;
  }
  const std::size_t resident = ResidentBytes();
  if (resident < least_resident_ + kWorthIt) {
    if (resident < least_resident_) least_resident_ = resident;
    return;
  }
  malloc_trim(0);
  least_resident_ = ResidentBytes();
}

}  // namespace foretoken::server
