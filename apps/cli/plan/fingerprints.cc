#include "cli/plan/fingerprints.h"

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "base/cores.h"
#include "model/open_checkpoint.h"
#include "tokenizer/tokenizer.h"
#include "weights/checkpoint.h"

namespace foretoken {

namespace {

struct Known {
  std::string fingerprint;
  std::string precision;
};

Result<Known> Know(const std::string& model, const std::string& weights,
                   const std::string& precision) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(model, weights));
  const Precision used = ParsePrecision(precision).value_or(UsualPrecision(checkpoint));
  return Known{checkpoint.Fingerprint(), std::string(PrecisionName(used))};
}

}  // namespace

Result<std::string> FingerprintModel(const std::string& model) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(model));
  return checkpoint.Fingerprint();
}

Result<ModelFingerprints> FingerprintModels(const ModelOptions& models) {
  FT_ASSIGN_OR_RETURN(const Known target, Know(models.target, models.weights, models.precision));
  ModelFingerprints fingerprints{.target = target.fingerprint, .precision = target.precision};
  if (!models.draft.empty()) {
    FT_ASSIGN_OR_RETURN(const Known draft,
                        Know(models.draft, models.draft_weights, models.precision));
    fingerprints.draft = draft.fingerprint;
    if (draft.precision != target.precision) fingerprints.precision += ", draft " + draft.precision;
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
