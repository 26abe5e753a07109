#pragma once

#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace foretoken::server {

/// Threads for connections, one each: started when a connection finds none free, up to `limit`;
/// beyond that connections wait their turn. They sleep while a stream has nothing to send.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(int limit) : limit_(limit) {}

  void enqueue(std::function<void()> connection) override;
  /// Lets what was enqueued run to its end, then joins.
  void shutdown() override;

 private:
  void Work();

  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool shutdown_ = false;
};

struct ConnectionLimits {
  int threads = 512;
  std::size_t body_bytes = 4 << 20;
  std::chrono::seconds idle{15};     ///< Between two requests of a connection.
  std::chrono::seconds request{30};  ///< For a request to arrive whole.
  std::chrono::seconds write{20};    ///< For the client to take anything at all.
};

/// An httplib server whose handlers can ask whether their client is still there, and whose idle
/// connections sleep in the kernel (httplib's own poll a hundred times a second).
class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(const ConnectionLimits& limits);

  /// Whether the client of the request under way has closed its connection. For handlers and
  /// content providers, on the thread that runs them.
  static bool ClientGone(const httplib::Request& request);

  /// Connections close after the reply under way; new ones are still answered, once.
  void EndKeepAlive() { keep_alive_ended_ = true; }

 private:
  bool process_and_close_socket(socket_t socket) override;

  const ConnectionLimits limits_;
  std::atomic<bool> keep_alive_ended_ = false;
};

}  // namespace foretoken::server
