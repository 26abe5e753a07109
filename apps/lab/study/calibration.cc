#include "apps/lab/study/calibration.h"

#include <cmath>
#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

// Enough of a fingerprint to tell two apart.
std::string Short(const std::string& fingerprint) {
  constexpr std::size_t kDigits = 12;
  return fingerprint.empty() ? "none" : fingerprint.substr(0, kDigits);
}

template <typename Value>
Error Another(std::string_view where, std::string_view whose, std::string_view what,
              const Value& measured, const Value& here) {
  return Invalid(
      "{}: measured with another {}: its {} is {}, here it is {}; run `foretoken calibrate` again",
      where, whose, what, measured, here);
}

ProposerModel ToProposer(const ProposerMeasurement& measurement) {
  ProposerModel proposer;
  for (const double rate : measurement.acceptance) proposer.acceptance.push_back(rate);
  proposer.coverage = measurement.coverage;
  proposer.mean_rows = measurement.mean_rows;
  proposer.us = measurement.us;
  proposer.curves = {.partial = HitCurve::FromMeasured(measurement.hit_partial),
                     .full = HitCurve::FromMeasured(measurement.hit_full)};
  return proposer;
}

}  // namespace

Status CheckMachine(const Calibration& calibration, const MachineFingerprint& machine,
                    std::string_view where) {
  const MachineFingerprint& measured = calibration.machine;
  const auto same = [&](std::string_view what, const auto& there, const auto& here) -> Status {
    if (there == here) return {};
    return Another(where, "machine or split of its cores", what, there, here);
  };
  FT_RETURN_IF_ERROR(same("processor", measured.cpu, machine.cpu));
  FT_RETURN_IF_ERROR(same("number of cores", measured.cores, machine.cores));
  FT_RETURN_IF_ERROR(same("instruction set", measured.isa, machine.isa));
  FT_RETURN_IF_ERROR(same("target's number of cores", measured.target_cores, machine.target_cores));
  return same("draft's number of cores", measured.draft_cores, machine.draft_cores);
}

Status CheckModels(const Calibration& calibration, const ModelFingerprints& models,
                   std::string_view where) {
  const ModelFingerprints& measured = calibration.models;
  const auto same = [&](std::string_view whose, const std::string& there,
                        const std::string& here) -> Status {
    if (there == here) return {};
    return Another(where, whose, "fingerprint", Short(there), Short(here));
  };
  FT_RETURN_IF_ERROR(same("target", measured.target, models.target));
  FT_RETURN_IF_ERROR(same("draft", measured.draft, models.draft));
  FT_RETURN_IF_ERROR(same("tokenizer", measured.tokenizer, models.tokenizer));
  if (measured.precision != models.precision) {
    return Another(where, "precision", "precision", measured.precision, models.precision);
  }
  if (measured.kv == models.kv) return {};
  return Another(where, "format of keys and values", "KV", measured.kv, models.kv);
}

const CalibratedSetting* FindSetting(const Calibration& calibration, double temperature,
                                     std::string_view verifier, double saguaro_c) {
  const CalibratedSetting* best = nullptr;
  const auto distance = [temperature](const CalibratedSetting& setting) {
    return std::pair(std::abs(setting.temperature - temperature), setting.temperature);
  };
  for (const CalibratedSetting& setting : calibration.settings) {
    if (setting.verifier != verifier || setting.saguaro_c != saguaro_c) continue;
    if (best == nullptr || distance(setting) < distance(*best)) best = &setting;
  }
  return best;
}

CostModel ToCostModel(const Calibration& calibration, const CalibratedSetting& setting) {
  CostModel model = calibration.times;
  for (const DrafterId id : kDrafterIds) model.proposers[id] = ToProposer(setting.proposers[id]);
  return model;
}

}  // namespace foretoken
