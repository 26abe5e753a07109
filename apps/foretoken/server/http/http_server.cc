#include "apps/foretoken/server/http/http_server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <utility>
#include <vector>

#include "base/exhaustion.h"

namespace foretoken::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// For model files, the speculator's memory and what else a process opens.
constexpr std::size_t kOwnDescriptors = 64;
constexpr int kBacklog = 4096;

// How many connections the process may have open, the soft limit of descriptors raised as far as
// the system lets it.
Result<std::size_t> AllowedConnections(std::size_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = wanted + kOwnDescriptors;
  if (limit.rlim_cur < needed) {
    rlimit raised = limit;
    raised.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur < kOwnDescriptors + 16) {
    return Invalid(
        "this process may open {} files only, too few for a server; at least {} are needed (ulimit "
        "-n)",
        limit.rlim_cur, kOwnDescriptors + 16);
  }
  return std::min<std::size_t>(wanted, limit.rlim_cur - kOwnDescriptors);
}

// No program that this one starts shall have it open too: the client would never see its end.
void CloseOnExec(int socket) { fcntl(socket, F_SETFD, FD_CLOEXEC); }

}  // namespace

// Accepts connections. Those beyond the limit are told so and closed, not left in the queue.
class HttpServer::Listener {
 public:
  Listener(asio::io_context* io, HttpShared* shared)
      : acceptor_(*io),
        pause_(*io),
        shared_(shared),
        spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {}
  ~Listener() { close(spare_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Without SO_REUSEPORT: two servers on one port would share its connections without a word.
  error_code Bind(const tcp::endpoint& address) {
    error_code error;
    acceptor_.open(address.protocol(), error);
    if (!error) CloseOnExec(acceptor_.native_handle());
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(address, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (error) {
      error_code ignored;
      acceptor_.close(ignored);
    }
    return error;
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  void Close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  void Accept(TlsContext* tls) {
    acceptor_.async_accept([this, tls](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {
        return Refill(tls, error);
      } else if (shared_->open.size() >= shared_->limits.connections) {
        TurnAway(std::move(socket), tls != nullptr);
      } else {
        CloseOnExec(socket.native_handle());
        std::make_shared<HttpConnection>(std::move(socket), tls, shared_)->Start();
      }
      Accept(tls);
    });
  }

 private:
  // Out of descriptors the connection would stay in the queue and be reported again and again: the
  // spare one is given up to accept it and let it go.
  void Refill(TlsContext* tls, error_code error) {
    if (error == asio::error::no_descriptors) {
      close(spare_);
      error_code failed;
      tcp::socket socket = acceptor_.accept(failed);
      if (!failed) TurnAway(std::move(socket), tls != nullptr);
      spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    pause_.expires_after(std::chrono::milliseconds(10));
    pause_.async_wait([this, tls](error_code cancelled) {
      if (!cancelled) Accept(tls);
    });
  }

  void TurnAway(tcp::socket socket, bool encrypted) {
    if (encrypted) return;
    HttpReply reply = shared_->app.refuse(503, "the server has no room for more connections");
    const std::string text = fmt::format(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
        "Retry-After: 1\r\nConnection: close\r\n\r\n{}",
        reply.content_type, reply.body.size(), reply.body);
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(text), 0, ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  HttpShared* const shared_;
  int spare_;
};

HttpServer::HttpServer(const HttpOptions& options, HttpApp app)
    : shared_{.limits = options.limits,
              .app = std::move(app),
              .first_id = std::uint64_t{std::random_device()()} << 32} {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options, HttpApp app) {
  std::unique_ptr<HttpServer> server(new HttpServer(options, std::move(app)));
  FT_ASSIGN_OR_RETURN(server->shared_.limits.connections,
                      AllowedConnections(options.limits.connections));
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return InvalidInput("TLS takes a certificate and its key, both or neither");
  }
  if (!options.tls_certificate.empty()) {
    FT_ASSIGN_OR_RETURN(server->tls_, TlsContext::Load(options.tls_certificate, options.tls_key));
  }
  server->listener_ = std::make_unique<Listener>(&server->io_, &server->shared_);
  error_code error;
  tcp::resolver resolver(server->io_);
  const auto addresses =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (!error) {
    error = asio::error::host_not_found;
    for (const auto& address : addresses) {
      error = server->listener_->Bind(address.endpoint());
      if (!error) break;
    }
  }
  if (error == asio::error::address_in_use) {
    return Invalid("cannot listen at {}:{}: the port is taken by another program", options.host,
                   options.port);
  }
  if (error) {
    return Invalid("cannot listen at {}:{}: {}", options.host, options.port, error.message());
  }
  server->port_ = server->listener_->port();
  server->listener_->Accept(server->tls_.get());
  return OrExhausted([&]() -> Result<std::unique_ptr<HttpServer>> {
    server->thread_ = std::thread([own = server.get()] { own->Run(); });
    return std::move(server);
  });
}

HttpServer::~HttpServer() { Stop(); }

// Connections end here and not with io_, so that what their answers hold goes on this thread too.
void HttpServer::Stop() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    listener_->Close();
    const std::vector<HttpConnection*> open(shared_.open.begin(), shared_.open.end());
    for (HttpConnection* connection : open) connection->Close();
    asio::post(io_, [this] { io_.stop(); });  // Behind the callbacks that are told so.
  });
  thread_.join();
  shared_.thread = {};
}

// A handler that runs out of memory loses its connection, not the server.
void HttpServer::Run() {
  shared_.thread = std::this_thread::get_id();
  while (!io_.stopped()) {
    try {
      io_.run();
    } catch (const std::exception& failed) {
      fmt::print(stderr, "foretoken: a connection was dropped: {}\n", failed.what());
    }
  }
}

void HttpServer::EndKeepAlive() {
  asio::post(io_, [this] {
    shared_.ending = true;
    const std::vector<HttpConnection*> open(shared_.open.begin(), shared_.open.end());
    for (HttpConnection* connection : open) connection->EndKeepAlive();
  });
}

}  // namespace foretoken::server
