#pragma once

#include <array>
#include <span>

#include "core/speculation/plan.h"

namespace foretoken {

/// The chance of a cache miss as a power law of the fan-out: miss(F) = c F^-r for F >= 1. The
/// paper's Definition 11 has c = 1, which would mean that a fan-out of 1 never hits.
struct PowerLaw {
  double c = 1;
  double r = 0;

  /// In [0, 1].
  double Miss(double fanout) const;
};

/// The power law through measured hit rates, `hit[i]` at fan-out i + 1: least squares on the
/// logarithm of the miss rate, every point weighted by its miss rate (a rare miss is a noisy one).
/// Points without misses are left out; without any the power law is c = 0, with one it is flat.
PowerLaw FitPowerLaw(std::span<const double> hit);

/// P(bonus token is among the F that were prepared for its node), for F = 0 .. kMaxFanout: starts
/// at 0, rises, and each further token adds no more than the one before (it is less likely).
/// Measured curves that break the last rule by noise are smoothed to it, so that marginal gain
/// finds the best fan-out.
class HitCurve {
 public:
  /// Never hits.
  HitCurve() = default;

  static HitCurve FromPowerLaw(const PowerLaw& law);
  /// `hit[i]` at fan-out i + 1, at most kMaxFanout of them, each in [0, 1]; further ones follow the
  /// power law fitted to these. Values that fall with F are an error of measurement and are
  /// smoothed too.
  static HitCurve FromMeasured(std::span<const double> hit);

  double hit(int fanout) const { return hit_[fanout]; }
  /// What the fan-out's last token adds: P(bonus token is candidate number `fanout`), from 1.
  double gain(int fanout) const { return hit_[fanout] - hit_[fanout - 1]; }

 private:
  // `hit[i]` at fan-out i + 1.
  explicit HitCurve(const std::array<double, kMaxFanout>& hit);

  std::array<double, kMaxFanout + 1> hit_{};
};

/// The hit curves of one kind of proposal.
struct HitCurves {
  HitCurve partial;  ///< At k < K: the proposal's own next token was refused there.
  HitCurve full;     ///< At k = K: all of the proposal was accepted.

  const HitCurve& at(int node, int proposal) const { return node < proposal ? partial : full; }
};

}  // namespace foretoken
