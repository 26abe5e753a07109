#include "text/hub/transfer/checksum.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// A hash under way.
class Digest {
 public:
  explicit Digest(const EVP_MD* algorithm) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    FT_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1);
  }
  void Update(std::string_view bytes) {
    FT_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::string Hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
    unsigned int size = 0;
    FT_CHECK(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1);
    return fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + size, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

Result<std::string> HashOfFile(const std::filesystem::path& path, std::uint64_t size, HashKind kind,
                               const std::function<bool(std::uint64_t)>& read) {
  constexpr std::size_t kBlock = 4 << 20;
  Digest digest(kind == HashKind::kSha256 ? EVP_sha256() : EVP_sha1());
  if (kind == HashKind::kGitSha1) {
    // What git puts before a file's content, a zero byte at its end.
    const std::string header = fmt::format("blob {}", size);
    digest.Update({header.c_str(), header.size() + 1});
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(std::min<std::uint64_t>(size, kBlock));
  for (std::uint64_t done = 0; done < size;) {
    if (!read(done)) return Error{ErrorCode::kCancelled, "interrupted"};
    const auto wanted = static_cast<std::streamsize>(std::min<std::uint64_t>(size - done, kBlock));
    if (!file.read(block.data(), wanted)) {
      return Invalid("'{}' cannot be read", path.string());
    }
    digest.Update({block.data(), Size(wanted)});
    done += static_cast<std::uint64_t>(wanted);
  }
  return digest.Hex();
}

}  // namespace foretoken
