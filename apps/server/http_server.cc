#include "server/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace foretoken::server {
namespace {

using Clock = std::chrono::steady_clock;

// Whether `socket` has one of `events` (or an error or end, which a read or write then reports)
// before `deadline`.
bool AwaitEvent(int socket, short events, Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd descriptor{.fd = socket, .events = events, .revents = 0};
    const int ready = poll(&descriptor, 1, static_cast<int>(std::max<long>(0, left)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool PeerClosed(int socket) {
  char byte = 0;
  const ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void AddressOf(int (*get)(int, sockaddr*, socklen_t*), int socket, std::string* ip, int* port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (get(socket, plain, &length) != 0 ||
      getnameinfo(plain, length, host.data(), host.size(), service.data(), service.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  *ip = host.data();
  *port = std::atoi(service.data());
}

// One connection, for as many requests as come through it.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~Connection() override {
    ::shutdown(socket_, SHUT_RDWR);
    close(socket_);
  }

  // Waits for a request to begin, and gives it its time. `ended` is looked at now and then.
  bool AwaitRequest(const std::function<bool()>& ended) {
    const auto idle_end = Clock::now() + limits_.idle;
    while (begin_ == end_) {
      const auto slice = std::min(idle_end, Clock::now() + std::chrono::milliseconds(250));
      if (AwaitEvent(socket_, POLLIN, slice)) break;
      if (ended() || Clock::now() >= idle_end) return false;
    }
    read_deadline_ = Clock::now() + limits_.request;
    return true;
  }

  bool is_readable() const override {
    return begin_ < end_ || AwaitEvent(socket_, POLLIN, read_deadline_);
  }
  bool is_writable() const override {
    return AwaitEvent(socket_, POLLOUT, Clock::now() + limits_.write) && !PeerClosed(socket_);
  }

  ssize_t read(char* bytes, std::size_t size) override {
    if (begin_ == end_) {
      if (!AwaitEvent(socket_, POLLIN, read_deadline_)) return -1;
      const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t taken = std::min(size, end_ - begin_);
    std::memcpy(bytes, buffer_.data() + begin_, taken);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
  }

  ssize_t write(const char* bytes, std::size_t size) override {
    while (true) {
      const ssize_t sent = send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) return sent;
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
      if (!AwaitEvent(socket_, POLLOUT, Clock::now() + limits_.write)) return -1;
    }
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    AddressOf(getpeername, socket_, &ip, &port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    AddressOf(getsockname, socket_, &ip, &port);
  }
  socket_t socket() const override { return socket_; }

 private:
  const int socket_;
  const ConnectionLimits& limits_;
  Clock::time_point read_deadline_;
  std::array<char, 16384> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

void ConnectionThreads::enqueue(std::function<void()> connection) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(connection));
  if (idle_ < waiting_.size() && threads_.size() < limit_) {
    threads_.emplace_back([this] { Work(); });
  }
  wake_.notify_one();
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    shutdown_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ConnectionThreads::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return shutdown_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const std::function<void()> connection = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    connection();
    lock.lock();
  }
}

HttpServer::HttpServer(const ConnectionLimits& limits) : limits_(limits) {
  new_task_queue = [threads = limits.threads] { return new ConnectionThreads(threads); };
  set_payload_max_length(limits.body_bytes);
  set_keep_alive_max_count(1000);
}

bool HttpServer::ClientGone(const httplib::Request& request) {
  return request.progress != nullptr && !request.progress(0, 0);
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, limits_);
  const auto ended = [this] { return svr_sock_ == INVALID_SOCKET || keep_alive_ended_; };
  // httplib leaves `progress`, a client's member, unused in a server: it carries ClientGone's
  // question. What is sent is small or a stream, so nothing is compressed.
  const auto prepare = [socket](httplib::Request& request) {
    request.progress = [socket](std::uint64_t, std::uint64_t) { return !PeerClosed(socket); };
    request.headers.erase("Accept-Encoding");
  };
  bool good = true;
  for (std::size_t left = keep_alive_max_count_; left > 0; --left) {
    if (!connection.AwaitRequest(ended)) break;
    bool closed = false;
    good = process_request(connection, left == 1 || ended(), closed, prepare);
    if (!good || closed) break;
  }
  return good;
}

}  // namespace foretoken::server
