#include "apps/foretoken/server/http/http_stream.h"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace foretoken::server {

namespace ssl = boost::asio::ssl;

struct TlsContext::Impl {
  ssl::context context{ssl::context::tls_server};
};

struct HttpStream::Tls {
  ssl::stream<Socket&> stream;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::unique_ptr<TlsContext>> TlsContext::Load(const std::string& certificate,
                                                     const std::string& key) {
  auto impl = std::make_unique<Impl>();
  boost::system::error_code error;
  impl->context.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                                ssl::context::no_sslv3 | ssl::context::no_tlsv1 |
                                ssl::context::no_tlsv1_1,
                            error);
  if (!error) impl->context.use_certificate_chain_file(certificate, error);
  if (error) {
    return Invalid("cannot read a certificate in PEM form from '{}': {}", certificate,
                   error.message());
  }
  impl->context.use_private_key_file(key, ssl::context::pem, error);
  if (error) {
    return Invalid(
        "cannot read a private key in PEM form that fits the certificate '{}' from '{}': {}",
        certificate, key, error.message());
  }
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(impl)));
}

HttpStream::HttpStream(Socket socket, TlsContext* tls) : socket_(std::move(socket)) {
  if (tls != nullptr) tls_.reset(new Tls{ssl::stream<Socket&>(socket_, tls->impl_->context)});
}
HttpStream::~HttpStream() = default;

void HttpStream::Handshake(std::function<void(boost::system::error_code)> done) {
  tls_->stream.async_handshake(ssl::stream_base::server, std::move(done));
}

void HttpStream::ReadSome(boost::asio::mutable_buffer into, Done done) {
  if (tls_ != nullptr) return tls_->stream.async_read_some(into, std::move(done));
  socket_.async_read_some(into, std::move(done));
}

void HttpStream::WriteSome(boost::asio::const_buffer from, Done done) {
  if (tls_ != nullptr) return tls_->stream.async_write_some(from, std::move(done));
  socket_.async_write_some(from, std::move(done));
}

}  // namespace foretoken::server
