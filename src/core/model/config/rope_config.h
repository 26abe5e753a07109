#pragma once

#include "core/model/config/config_fields.h"
#include "core/model/config/model_config.h"

namespace foretoken {

/// What is said beside a rotation.
struct Context {
  int made_for = 0;  ///< Positions.
  int used = 0;      ///< How many of these are used.
  int first = 0;     ///< Positions that the model was first trained on; 0: that is not said there.
  /// The share of each head that a proportional rotation turns if it does not say it.
  double share = 1;
};

/// The rotation that `fields` describe (rope_theta, rope_scaling or the newer rope_parameters, and
/// partial_rotary_factor, where the family has that field) of heads of `head_dim`. Both objects may
/// be there as long as they say the same.
RopeSpec ReadRope(ConfigFields& fields, int head_dim, const Context& context);

/// The rotation of the layers of one type, where `rope` is said of them alone; what that leaves out
/// is as in `usual`, whose dimensions it does not change.
RopeSpec ReadRopeOfLayers(ConfigFields& rope, const Context& context, const RopeSpec& usual);

}  // namespace foretoken
