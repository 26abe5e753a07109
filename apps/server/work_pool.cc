#include "server/work_pool.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "base/exhaustion.h"

namespace foretoken::server {

// Not Boost's own pool, which waits for ever where one of its threads cannot be started.
struct WorkPool::Threads {
  boost::asio::io_context work;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> more =
      boost::asio::make_work_guard(work);
  std::vector<std::thread> threads;
};

WorkPool::WorkPool(int most_waiting)
    : most_waiting_(most_waiting), threads_(std::make_unique<Threads>()) {}

WorkPool::~WorkPool() {
  threads_->more.reset();
  for (std::thread& thread : threads_->threads) thread.join();
}

Result<std::unique_ptr<WorkPool>> WorkPool::Start(int threads, int most_waiting) {
  std::unique_ptr<WorkPool> pool(new WorkPool(most_waiting));
  return OrExhausted([&]() -> Result<std::unique_ptr<WorkPool>> {
    for (int i = 0; i < threads; ++i) {
      pool->threads_->threads.emplace_back([own = pool->threads_.get()] { own->work.run(); });
    }
    return std::move(pool);
  });
}

bool WorkPool::Run(std::function<void()> work, std::function<void()> failed) {
  if (++waiting_ > most_waiting_) {
    --waiting_;
    return false;
  }
  boost::asio::post(threads_->work, [this, work = std::move(work), failed = std::move(failed)] {
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
