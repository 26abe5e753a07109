#pragma once

#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/threads/thread_pool.h"
#include "core/backend/backend.h"

namespace foretoken {

/// A device that models run on: a set of cores with one pinned thread each. Models of one device
/// run in turns; one owner thread drives them all.
class Device {
 public:
  explicit Device(CoreSet cores) : pool_(std::move(cores)) {}

  /// "cores 0-3"
  std::string name() const { return "cores " + FormatCores(pool_.cores()); }

  /// Whether it has any of `cores`.
  bool Overlaps(const CoreSet& cores) const;

  /// The fastest backend of this machine for the device, which it borrows.
  std::unique_ptr<Backend> MakeBackend(Numerics numerics);

  /// Makes the calling thread the device's owner and pins it there. Call it once before passes.
  void Adopt() { pool_.Adopt(); }

  /// Returns what `work` returns when a thread calls it that owns the device meanwhile: the calling
  /// thread may be anywhere, on another device's core too. Throws what `work` throws.
  template <typename Work>
  auto Run(const Work& work) {
    decltype(work()) result;
    std::exception_ptr thrown;
    std::thread([&] {
      try {
        Adopt();
        result = work();
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    if (thrown != nullptr) std::rethrow_exception(thrown);
    return result;
  }

  /// For backends and what measures them.
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
};

}  // namespace foretoken
