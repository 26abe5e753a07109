#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace foretoken {

/// Calls `work(part)` for every part below `parts`, on as many threads, this one among them. Parts
/// for which the system starts no thread are done by this one after its own, so none may wait for
/// another. Throws what a part threw first, when all are done.
template <typename Work>
void RunThreads(int parts, const Work& work) {
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto run = [&](int part) {
    try {
      work(part);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (thrown == nullptr) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(parts);
  int started = 1;
  try {
    for (; started < parts; ++started) others.emplace_back(run, started);
  } catch (const std::exception&) {  // Fewer have to do.
  }
  run(0);
  for (int part = started; part < parts; ++part) run(part);
  for (std::thread& other : others) other.join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace foretoken
