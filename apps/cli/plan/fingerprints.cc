#include "cli/plan/fingerprints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "backend/cpu/cpu_backend.h"
#include "base/cores.h"
#include "base/sha256.h"
#include "cli/common/machine.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_folder.h"

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

Result<std::string> FingerprintModel(const std::string& directory) {
  FT_ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(directory));
  Sha256 sha;
  sha.Update(folder.config_json());
  for (const auto& [name, tensor] : folder.tensors()) {
    sha.Update(fmt::format("\n{} {} {}\n", name, DTypeName(tensor.dtype), tensor.bytes()));
    AddSamples({reinterpret_cast<const char*>(tensor.data), tensor.bytes()}, &sha);
  }
  return sha.Hex();
}

Result<ModelFingerprints> FingerprintModels(const std::string& target, const std::string& draft,
                                            const std::string& precision) {
  ModelFingerprints fingerprints;
  FT_ASSIGN_OR_RETURN(fingerprints.target, FingerprintModel(target));
  if (!draft.empty()) {
    FT_ASSIGN_OR_RETURN(fingerprints.draft, FingerprintModel(draft));
  }
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(target));
  fingerprints.tokenizer = tokenizer->fingerprint();
  fingerprints.precision = precision;
  return fingerprints;
}

MachineFingerprint FingerprintMachine(const Cores& cores) {
  return {.cpu = CpuModel(),
          .cores = static_cast<int>(AvailableCores().size()),
          .isa = std::string(IsaName(AvailableIsas().back())),
          .target_cores = static_cast<int>(cores.target.size()),
          .draft_cores = static_cast<int>(cores.draft.size())};
}

}  // namespace foretoken
