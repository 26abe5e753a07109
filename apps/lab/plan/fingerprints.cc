#include "apps/lab/plan/fingerprints.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "base/files/read_file.h"
#include "base/numbers/integers.h"
#include "base/numbers/sha256.h"
#include "base/threads/cores.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/model/drafters/learned_draft.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "core/weights/requantize.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

namespace {

struct Known {
  std::string fingerprint;
  std::string precision;
  std::string kv;
};

// A model, or a drafter that reads the states of one, whose tensors keep their files' names.
Result<Checkpoint> OpenFiles(const std::string& path, const std::string& weights) {
  FT_ASSIGN_OR_RETURN(Checkpoint files, Checkpoint::Open(path));
  if (!IsLearnedDraft(files)) return OpenCheckpoint(path, weights);
  if (weights.empty()) return files;
  FT_ASSIGN_OR_RETURN(const WeightType type, ParseWeightType(weights));
  return Requantize(std::move(files), type, {});
}

// Finds out about the target or the draft, with numbers kept as `options` say.
Result<Known> Know(const std::string& model, const std::string& weights,
                   const ModelOptions& options) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenFiles(model, weights));
  const Precision precision =
      ParsePrecision(options.precision).value_or(UsualPrecision(checkpoint));
  const KvFormat kv = ParseKvFormat(options.kv).value_or(UsualKvFormat(precision));
  return Known{checkpoint.Fingerprint(), std::string(PrecisionName(precision)),
               std::string(KvFormatName(kv))};
}

// What of its files a draft is (ModelSource::own_drafter), and what a file says that names it.
std::string WhatOfIt(const std::string& own) {
  constexpr std::string_view kSkip = "skip=";
  if (!own.starts_with(kSkip)) return own.empty() ? own : ":" + own;
  const auto file = ReadFile(own.substr(kSkip.size()));
  return ":" + own + (file.ok() ? Sha256Hex(*file) : std::string());
}

// A draft's fingerprint, another one where it may only say some tokens.
Result<std::string> Limited(const std::string& fingerprint, const DraftVocabulary& says) {
  if (says.whole()) return fingerprint;
  const auto ranking = ReadFile(says.ranking);
  if (!ranking.ok()) {
    return Invalid("{}: cannot be read: {}", says.ranking, ranking.error().message);
  }
  // Files of earlier measurements have 0 where all that is ranked may be said.
  return Sha256Hex(fmt::format("{} says {} of {}", fingerprint, says.most.value_or(0), *ranking));
}

}  // namespace

Result<std::string> FingerprintModel(const std::string& model) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenFiles(model, ""));
  return checkpoint.Fingerprint();
}

Result<ModelFingerprints> FingerprintModels(const ModelOptions& models) {
  FT_ASSIGN_OR_RETURN(const Known target, Know(models.target, models.weights, models));
  // The draft's KV is the same: what is usual differs only with a precision that both have.
  ModelFingerprints fingerprints{
      .target = target.fingerprint, .precision = target.precision, .kv = target.kv};
  if (!models.draft.empty()) {
    FT_ASSIGN_OR_RETURN(const Known draft, Know(models.draft, models.draft_weights, models));
    FT_ASSIGN_OR_RETURN(
        fingerprints.draft,
        Limited(draft.fingerprint + WhatOfIt(models.own_drafter), models.draft_vocabulary));
    if (draft.precision != target.precision) fingerprints.precision += ", draft " + draft.precision;
  }
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(models.target));
  fingerprints.tokenizer = tokenizer->fingerprint();
  return fingerprints;
}

MachineFingerprint FingerprintMachine(const Cores& cores) {
  return {.cpu = CpuModel(),
          .cores = Int(AvailableCores().size()),
          .isa = AvailableKernels().back()->name,
          .target_cores = Int(cores.target.size()),
          .draft_cores = Int(cores.draft.size())};
}

}  // namespace foretoken
