#pragma once

#include "model/config/config_fields.h"
#include "model/config/model_config.h"

namespace foretoken {

/// Positions that a model was made for, and those of them that it is used for.
struct Context {
  int made_for = 0;
  int used = 0;
};

/// The rotation that `fields` describe (rope_theta, partial_rotary_factor, and rope_scaling or the
/// newer rope_parameters) of heads of `head_dim`.
RopeSpec ReadRope(ConfigFields& fields, int head_dim, const Context& context);

/// That of an object such as rope_parameters alone; what it leaves out is as in `usual`.
RopeSpec ReadRopeParameters(ConfigFields& rope, const Context& context, const RopeSpec& usual);

}  // namespace foretoken
