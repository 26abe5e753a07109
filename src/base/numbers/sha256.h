#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace foretoken {

/// SHA-256 (FIPS 180-4), for fingerprints. Feed bytes with `Update`, then call `Hex` once.
class Sha256 {
 public:
  Sha256();
  void Update(std::string_view bytes);
  /// The digest of all bytes so far as 64 lower-case hexadecimal digits; ends the computation.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// The digest of these bytes alone.
std::string Sha256Hex(std::string_view bytes);

}  // namespace foretoken
