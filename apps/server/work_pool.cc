#include "server/work_pool.h"

#include <fmt/core.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <system_error>
#include <utility>

namespace foretoken::server {

struct WorkPool::Threads {
  explicit Threads(int count) : pool(static_cast<std::size_t>(count)) {}
  boost::asio::thread_pool pool;
};

WorkPool::WorkPool(std::unique_ptr<Threads> threads, int most_waiting)
    : most_waiting_(most_waiting), threads_(std::move(threads)) {}

WorkPool::~WorkPool() { threads_->pool.join(); }

Result<std::unique_ptr<WorkPool>> WorkPool::Start(int threads, int most_waiting) {
  try {
    return std::unique_ptr<WorkPool>(
        new WorkPool(std::make_unique<Threads>(threads), most_waiting));
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the {} threads that read requests cannot be started: {}", threads,
                             error.what())};
  }
}

bool WorkPool::Run(std::function<void()> work, std::function<void()> failed) {
  if (++waiting_ > most_waiting_) {
    --waiting_;
    return false;
  }
  boost::asio::post(threads_->pool, [this, work = std::move(work), failed = std::move(failed)] {
    try {
      work();
    } catch (const std::exception&) {
      failed();
    }
    --waiting_;
  });
  return true;
}

}  // namespace foretoken::server
