#pragma once

/// How fast the weight of what the planner has observed decays: the factors by which it is
/// multiplied. What is observed halves in some 500 observations. What is not drifts back to its
/// prior in some 2,000 rounds: a mode that lost is tried again.
namespace foretoken {

inline constexpr double kKeepProposal = 0.9985;
inline constexpr double kKeepPass = 0.998;
inline constexpr double kKeepUnobserved = 0.9996;

}  // namespace foretoken
