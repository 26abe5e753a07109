#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace foretoken::server {

/// The server's certificate and key, from PEM files.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> Load(const std::string& certificate,
                                                  const std::string& key);
  ~TlsContext();

 private:
  friend class HttpStream;
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The bytes of one connection, with or without TLS. One read and one write may be under way at
/// once; callbacks come from the socket's executor, never from within the call.
class HttpStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Done = std::function<void(boost::system::error_code, std::size_t)>;

  /// `tls` null: plain.
  HttpStream(Socket socket, TlsContext* tls);
  ~HttpStream();

  bool encrypted() const { return tls_ != nullptr; }
  Socket& socket() { return socket_; }

  /// Where it is encrypted: before anything is read or written.
  void Handshake(std::function<void(boost::system::error_code)> done);
  void ReadSome(boost::asio::mutable_buffer into, Done done);
  void WriteSome(boost::asio::const_buffer from, Done done);

 private:
  struct Tls;
  Socket socket_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace foretoken::server
