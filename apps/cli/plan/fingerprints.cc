#include "cli/plan/fingerprints.h"

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "base/cores.h"
#include "tokenizer/tokenizer.h"
#include "weights/checkpoint.h"

namespace foretoken {

Result<std::string> FingerprintModel(const std::string& model) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(model));
  return checkpoint.Fingerprint();
}

Result<ModelFingerprints> FingerprintModels(const ModelOptions& models) {
  ModelFingerprints fingerprints{.precision = models.precision};
  FT_ASSIGN_OR_RETURN(fingerprints.target, FingerprintModel(models.target));
  if (!models.draft.empty()) {
    FT_ASSIGN_OR_RETURN(fingerprints.draft, FingerprintModel(models.draft));
  }
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(models.target));
  fingerprints.tokenizer = tokenizer->fingerprint();
  return fingerprints;
}

MachineFingerprint FingerprintMachine(const Cores& cores) {
  return {.cpu = CpuModel(),
          .cores = static_cast<int>(AvailableCores().size()),
          .isa = AvailableKernels().back()->name,
          .target_cores = static_cast<int>(cores.target.size()),
          .draft_cores = static_cast<int>(cores.draft.size())};
}

}  // namespace foretoken
