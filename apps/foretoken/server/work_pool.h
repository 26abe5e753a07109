#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace foretoken::server {

/// Something that a client wants done.
struct Job {
  /// Whether reading or writing so many bytes takes longer than a few milliseconds.
  static bool TakesLong(std::size_t bytes) { return bytes > (16 << 10); }

  std::string client;  ///< Whose turn it takes.
  bool takes_long = false;
  std::function<bool()>
      unwanted;  ///< Asked before it begins: whether nobody waits for it any more.
  std::function<void()> work;
  std::function<void()> failed;  ///< Told what `work` throws: memory that cannot be had.
};

/// A few threads for what would hold up the HTTP server's own: reading and tokenising requests, and
/// writing long replies. Clients take turns, each with its oldest job; and half of the threads do
/// short jobs only, so that whoever sends much to read waits for himself and not others for him.
/// A job's functions are called, and die, on one of the threads. Memory that long jobs took goes
/// back to the system behind them.
class WorkPool {
 public:
  static Result<std::unique_ptr<WorkPool>> Start(int threads);
  /// Finishes what was taken, then joins.
  ~WorkPool();

  /// Any thread.
  void Run(Job job);

 private:
  // Jobs that wait, client by client.
  class Turns {
   public:
    void Push(Job job);
    std::optional<Job> Pop();  // None where none waits.
    bool empty() const { return next_.empty(); }

   private:
    std::map<std::string, std::deque<Job>> waiting_;  // By client, where it has any.
    // Clients with jobs, in the order of their turns.
    std::deque<std::string> next_;
  };

  WorkPool();
  void Work(bool short_only);
  std::optional<Job> Next(bool short_only);
  void GiveMemoryBack();

  std::mutex mutex_;
  std::condition_variable changed_;
  Turns short_;
  Turns long_;
  bool ending_ = false;
  std::atomic<std::size_t>
      least_resident_;  // Bytes of the process: the least since memory was given back.
  std::vector<std::thread> threads_;  // Last: they use all of the above.
};

}  // namespace foretoken::server
