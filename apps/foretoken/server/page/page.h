#pragma once

#include <span>
#include <string_view>

namespace foretoken::server {

/// One file of the web page, embedded in the program.
struct PageFile {
  std::string_view path;  ///< As requested: "/" is the page itself, "/page/..." what it loads.
  std::string_view content_type;
  std::string_view body;
};

/// Every file that the page consists of. It loads nothing else but the server's own API.
std::span<const PageFile> PageFiles();

/// The Content-Security-Policy that the page keeps to: own scripts and styles only, none inline, no
/// other host, no framing, and no script that has text read as HTML.
inline constexpr std::string_view kPageSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

}  // namespace foretoken::server
