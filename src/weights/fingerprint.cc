#include "weights/fingerprint.h"

#include <fmt/core.h>

#include <cstddef>
#include <string_view>

#include "base/sha256.h"

namespace foretoken {
namespace {

// Of each tensor: that many pieces, evenly spread, the first and the last bytes among them.
constexpr std::size_t kPieces = 16;
constexpr std::size_t kPieceBytes = 64;

void AddSamples(std::string_view bytes, Sha256* sha) {
  if (bytes.size() <= kPieces * kPieceBytes) {
    sha->Update(bytes);
    return;
  }
  const std::size_t last = bytes.size() - kPieceBytes;
  for (std::size_t i = 0; i < kPieces; ++i) {
    sha->Update(bytes.substr(last / (kPieces - 1) * i, kPieceBytes));
  }
  sha->Update(bytes.substr(last));
}

}  // namespace

std::string FingerprintModel(const ModelFolder& folder) {
  Sha256 sha;
  sha.Update(folder.config_json());
  for (const auto& [name, tensor] : folder.tensors()) {
    sha.Update(fmt::format("\n{} {} {}\n", name, DTypeName(tensor.dtype), tensor.bytes()));
    AddSamples({reinterpret_cast<const char*>(tensor.data), tensor.bytes()}, &sha);
  }
  return sha.Hex();
}

}  // namespace foretoken
